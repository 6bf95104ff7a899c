"""Proposals: what a script of a search tries, named in its first line, so that the next request can build on it."""

import json
import re
from dataclasses import asdict, dataclass, replace

from sandmle.grammars.operators import SCORE_LINE
from sandmle.policies.scripted.explorer import possible_blocks
from sandmle.policies.scripted.moves import Desk
from sandmle.policies.scripted.profile import Form, Profile
from sandmle.policies.scripted.scripts import write_script
from sandmle.policies.scripted.slips import draw_slip

_HEAD = re.compile(r"^# Proposal: (\{.*\})$", re.MULTILINE)
_VALIDATED = frozenset({"boosted", "features", "blend"})
"""Kinds whose scripts cross-validate."""
NATIVE_BLOCKS = ("dates", "codes", "texts", "images", "traces", "places", "repeats")
"""Blocks that turn a column no model can read into numbers; no proposal leaves them out."""


@dataclass(frozen=True)
class Proposal:
    """What a script tries.

    Attributes:
        kind: Template of the script: ``sample``, ``average``, ``linear``, ``boosted``, ``features`` or ``blend``.
        blocks: Blocks of features, for ``features`` and ``blend``.
        rng_seed: Of folds and bags.
        slips: The script has a mistake in it.
        low: Smallest value that may be predicted, once a complaint has named it.
        high: Largest value.
    """

    kind: str
    blocks: tuple[str, ...] = ()
    rng_seed: int = 0
    slips: bool = False
    low: float | None = None
    high: float | None = None


def read_proposals(prompt: str) -> list[Proposal]:
    """Returns the proposals of the scripts that a prompt shows, in order."""
    found = []
    for text in _HEAD.findall(prompt):
        values = json.loads(text)
        found.append(Proposal(**{**values, "blocks": tuple(values["blocks"])}))
    return found


def write_proposal(proposal: Proposal, desk: Desk, profile: Profile | None) -> str:
    """Returns the script of a proposal.

    Args:
        proposal: What to try.
        desk: Draws the mistake, where there is to be one.
        profile: The task; None where it could not be read, which only ``sample`` can do without.
    """
    if profile is None or proposal.kind == "sample":
        code = write_script("sample")
    else:
        known = replace(
            profile,
            low=profile.low if proposal.low is None else proposal.low,
            high=profile.high if proposal.high is None else proposal.high,
        )
        code = _script(proposal, known)
        if proposal.kind in _VALIDATED:
            sign = "" if known.higher_is_better else "-"
            code = f'{code}\nprint("{SCORE_LINE}", round(float({sign}best), 6))'
    if proposal.slips:
        slip = draw_slip(desk, "proposal", 1.0, code, profile)
        code = code if slip is None else slip.code
    return f"# Proposal: {json.dumps(asdict(proposal))}\n{code}"


def blocks_for(profile: Profile) -> tuple[str, ...]:
    """Returns the blocks of features that a task allows."""
    return possible_blocks(profile)


def is_open(profile: Profile | None) -> bool:
    """Tells whether the task is one that scripts other than ``sample`` can be written for."""
    return profile is not None and profile.form is not Form.UNKNOWN


def _script(proposal: Proposal, profile: Profile) -> str:
    many = profile.n_classes > 8 or len(profile.predicted) > 8
    return write_script(
        proposal.kind,
        p=profile,
        blocks=proposal.blocks,
        native=[name for name in proposal.blocks if name in NATIVE_BLOCKS],
        thrift=0.8,
        k=5,
        n_folds=3 if many else 5,
        seed=proposal.rng_seed,
        slow_grid=False,
        forgets_missing=False,
        quick=many,
        careful=proposal.kind in _VALIDATED,
        tuned=proposal.kind in _VALIDATED,
        bags=3 if profile.n_classes > 2 or len(profile.predicted) > 2 else 6,
    )
