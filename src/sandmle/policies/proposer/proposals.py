"""Proposals: what a script of a search tries, named in its first line, so that the next request can build on it."""

import json
import re
from dataclasses import asdict, dataclass, replace

from sandmle.grammars.operators import SCORE_LINE
from sandmle.policies.scripted.brief import Brief
from sandmle.policies.scripted.explorer import NATIVE_BLOCKS, possible_blocks
from sandmle.policies.scripted.moves import Desk
from sandmle.policies.scripted.profile import Form, Profile
from sandmle.policies.scripted.scripts import first_pieces_script, unpack_script, write_script
from sandmle.policies.scripted.slips import draw_slip
from sandmle.policies.scripted.tinkerer import tinkerer_script

_HEAD = re.compile(r"^# Proposal: (\{.*\})$", re.MULTILINE)
_TUNED = frozenset({"boosted", "features", "blend"})
"""Kinds whose scripts choose by cross-validation; the others are asked what it gives."""
_SEEN = re.compile(r"^(?:rows: |sample columns: |sample row: |answers sum to one: |\{'column': ).*$", re.MULTILINE)
"""The lines of a look at the files from which a profile is read."""


@dataclass(frozen=True)
class Proposal:
    """What a script tries.

    Attributes:
        kind: Template of the script: ``sample``, ``average``, ``linear``, ``boosted``, ``features``, ``blend``,
            ``tinkerer``, or ``pieces``, the first one for a task whose rows are to be taken apart.
        blocks: Blocks of features, for ``features`` and ``blend``.
        rng_seed: Of folds and bags.
        slips: The script has a mistake in it.
        low: Smallest value that may be predicted, once a complaint has named it.
        high: Largest value.
        seen: What a look at the pieces of the rows printed, in a script that takes them apart.
    """

    kind: str
    blocks: tuple[str, ...] = ()
    rng_seed: int = 0
    slips: bool = False
    low: float | None = None
    high: float | None = None
    seen: str = ""


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
    brief = desk.brief
    if proposal.kind == "pieces":
        code = first_pieces_script(brief.pieces, brief.n_pieces, brief.metric_name, proposal.rng_seed)
        code = _with_score(code, higher_is_better=brief.higher_is_better)
    elif profile is None or proposal.kind == "sample":
        code = write_script("sample")
    else:
        known = replace(
            profile,
            low=profile.low if proposal.low is None else proposal.low,
            high=profile.high if proposal.high is None else proposal.high,
        )
        code = _script(proposal, known, brief)
        # The fit to pieces is measured in their own way; what is told rises and falls as the task's metric does.
        higher = brief.higher_is_better if known.pieces else known.higher_is_better
        code = _with_score(code, higher_is_better=higher)
        if known.pieces:  # each script of a search runs in an empty folder
            code = f"{unpack_script(brief.pieces, brief.n_pieces)}\n\n{code}"
    if proposal.slips:
        slip = draw_slip(desk, "proposal", 1.0, code, profile)
        code = code if slip is None else slip.code
    return f"# Proposal: {json.dumps(asdict(proposal))}\n{code}"


def read_seen(proposals: list[Proposal], prompt: str) -> str:
    """Returns what a look at the pieces printed: as an earlier script knew it, or as one printed it; else nothing."""
    known = next((proposal.seen for proposal in proposals if proposal.seen), "")
    return known or "\n".join(_SEEN.findall(prompt))


def _with_score(code: str, *, higher_is_better: bool) -> str:
    """Lets a script print its validation score; ``best`` holds it, more is better."""
    return f'{code}\nprint("{SCORE_LINE}", round(float({"" if higher_is_better else "-"}best), 6))'


def blocks_for(profile: Profile) -> tuple[str, ...]:
    """Returns the blocks of features that a task allows."""
    return possible_blocks(profile)


def is_open(profile: Profile | None) -> bool:
    """Tells whether the task is one that scripts other than ``sample`` can be written for."""
    return profile is not None and profile.form is not Form.UNKNOWN


def _script(proposal: Proposal, profile: Profile, brief: Brief) -> str:
    if proposal.kind == "tinkerer":
        return tinkerer_script(Desk(brief, proposal.rng_seed), "proposal", scored=True)
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
        careful=proposal.kind in _TUNED,
        tuned=proposal.kind in _TUNED,
        scored=proposal.kind not in _TUNED,
        bags=2 if profile.n_classes > 2 or len(profile.predicted) > 2 else 4,
    )
