"""The strongest engineer."""

from sandmle.policies.scripted.habits import look
from sandmle.policies.scripted.moves import Desk, Plan


def explorer(desk: Desk) -> Plan:
    """Explores the data."""
    yield from look(desk)
