"""The forkserver against the whole contract, as whoever runs the tests."""

from collections.abc import Iterator

import pytest

from sandmle.sandbox.forkserver import ForkserverSandbox
from sandmle.sandbox.testing import SandboxContract

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ForkserverSandbox]:
    with ForkserverSandbox(workers=8) as started:
        yield started


class TestForkserver(SandboxContract):
    pass
