"""The policy: engineers in a transcript, proposers in a tree search, JSON actions in ``mle_agent``.

Like the engineers it keeps nothing between calls: the same prompt and ``rng_seed`` give the same reply.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from typing_extensions import override

from sandmle.grammars import Action, FencedGrammar, get_grammar
from sandmle.grammars.json_reply import ACTIONS, JsonAction, parse_json_action, render_json_action
from sandmle.grammars.operators import Analysis, read_job, read_score_line, render_analysis, render_script
from sandmle.policies.base import SamplingParams
from sandmle.policies.proposer.proposals import (
    Proposal,
    blocks_for,
    is_open,
    read_proposals,
    read_seen,
    write_proposal,
)
from sandmle.policies.scripted import ScriptedPolicy, open_scripted
from sandmle.policies.scripted.brief import Brief, brief_of_pieces, read_bounds, read_brief
from sandmle.policies.scripted.engineers import ENGINEERS
from sandmle.policies.scripted.explorer import NATIVE_BLOCKS, helpful_blocks
from sandmle.policies.scripted.habits import complaint, profile_of_pieces
from sandmle.policies.scripted.moves import Desk
from sandmle.policies.scripted.profile import Profile, read_profile
from sandmle.policies.scripted.scripts import PIECES, unpack_script
from sandmle.records import ActionKind, Completion, Message, Usage

_TASK_HEADING = "# The competition"
_SLIP_RATE = 0.2
_WHOLE_ROWS = ("sample", "tinkerer")
"""Engineers that do not take rows apart: where that is needed they hand in the sample submission."""
_FALLBACK: Mapping[str, str] = MappingProxyType({"blend": "features", "features": "boosted"})
"""What to try when a script without a mistake of ours breaks; after that the sample submission."""
_PLANS: Mapping[str, str] = MappingProxyType(
    {
        "pieces": "I take the rows apart, look at the pieces, and fit a first model to them.",
        "sample": "I hand in the sample submission as it is.",
        "average": "I add up the mean answers in bins of the columns that tell most.",
        "linear": "I fit a linear model to the raw columns.",
        "boosted": "I tune gradient boosting by cross-validation, with a linear model as a check.",
        "features": "I compare blocks of features by cross-validation and keep those that help: {blocks}.",
        "tinkerer": "I read the columns by kind and try some kinds of features and models.",
        "blend": "I blend linear, kernel, forest and boosted models on these blocks of features: {blocks}.",
    }
)


class ProposerPolicy:
    """A scripted engineer that works under every scaffold."""

    def __init__(self, name: str, grammar: str = "react") -> None:
        """Opens the engineer.

        Args:
            name: One of ``sandmle.policies.scripted.SCRIPTED_NAMES``.
            grammar: The grammar of its replies in a transcript.

        Raises:
            ConfigError: There is no engineer or no grammar of that name.
        """
        self._engineer = open_scripted(name, get_grammar(grammar).name)
        self._actor = ScriptedPolicy(name, ENGINEERS[name], _JsonForm())
        self._kind = name
        self.name = self._engineer.name

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """Returns the next reply, in the form that the scaffold asks for."""
        last = transcript[-1].content if transcript else ""
        job = read_job(last)
        if job is not None:
            text = self._answer(job, transcript[0].content, last, sampling.rng_seed)
            return Completion(text=text, usage=Usage(requests=1))
        if transcript and _asks_for_json(transcript[0]):
            reply = await self._actor.generate(transcript, sampling)
            action = parse_json_action(reply.text)
            if isinstance(action, JsonAction):
                return reply.replace(text=render_json_action(_whole(action, read_brief(transcript[0].content))))
            return reply.replace(text=render_json_action(JsonAction("get_history")))  # a turn that forgets to act
        return await self._engineer.generate(transcript, sampling)

    async def aclose(self) -> None:
        """Does nothing: there is nothing to release."""

    def _answer(self, job: str, system: str, prompt: str, rng_seed: int) -> str:
        if job == "analyze":
            return render_analysis(analyze(prompt))
        task = system.partition(_TASK_HEADING)[2]
        brief, parents = read_brief(task), read_proposals(prompt)
        seen = read_seen(parents, prompt) if brief.pieces else ""
        profile, desk = _profile_of(task, brief, seen), Desk(brief, rng_seed)
        if job == "debug":
            proposal = mend(parents, prompt)
        elif brief.pieces and profile is None and self._kind not in _WHOLE_ROWS:
            proposal = Proposal("pieces", rng_seed=desk.rng_seed % 1000)
        elif not is_open(profile) or profile is None:
            proposal = Proposal("sample")
        else:
            proposal = self._propose(job, parents, profile, desk, prompt)
        if (not is_open(profile) or profile is None) and proposal.kind != "pieces":
            proposal = Proposal("sample")
        proposal = replace(proposal, seen=seen)
        plan = _PLANS[proposal.kind].format(blocks=", ".join(proposal.blocks) or "none")
        return render_script(plan, write_proposal(proposal, desk, profile))

    def _propose(self, job: str, parents: list[Proposal], profile: Profile, desk: Desk, prompt: str) -> Proposal:
        proposal = Proposal(self._kind, rng_seed=desk.rng_seed % 1000)
        if self._kind == "explorer":
            make = {"draft": draft, "improve": improve, "crossover": cross}[job]
            proposal = make(parents, profile, desk, prompt)
        return replace(proposal, slips=proposal.kind != "sample" and desk.chance("slips", _SLIP_RATE))


def open_proposer(argument: str, grammar: str = "react") -> ProposerPolicy:
    """Returns the scripted engineer of a name, for any scaffold; ``grammar`` is that of its replies in a transcript."""
    return ProposerPolicy(argument, grammar)


def draft(parents: list[Proposal], profile: Profile, desk: Desk, prompt: str) -> Proposal:
    """Returns a first script: boosting, or features with all or some of the blocks."""
    del parents, prompt
    blocks = blocks_for(profile)
    kind = desk.choose("draft", ("features", "features", "boosted"))
    if kind == "features" and desk.chance("some blocks", 0.5):
        blocks = tuple(name for name in blocks if name in NATIVE_BLOCKS or desk.chance(f"block {name}", 0.6))
    return Proposal(kind, blocks if kind == "features" else (), desk.rng_seed % 1000)


def improve(parents: list[Proposal], profile: Profile, desk: Desk, prompt: str) -> Proposal:
    """Returns the next step from a script that works: boosting, features, a blend, then another blend."""
    seed, known = desk.rng_seed % 1000, blocks_for(profile)
    parent = parents[0] if parents else Proposal("boosted")
    if parent.kind in ("boosted", "pieces"):
        # Features alone may do worse, and then a greedy search never builds on them.
        kind = "blend" if desk.chance("blend at once", 0.5) else "features"
        return Proposal(kind, known, seed, low=parent.low, high=parent.high)
    if parent.kind == "features":
        return Proposal("blend", helpful_blocks(prompt, parent.blocks), seed, low=parent.low, high=parent.high)
    choices = tuple(name for name in known if name not in NATIVE_BLOCKS)
    if parent.kind != "blend" or not choices:
        return replace(parent, rng_seed=seed, slips=False)
    turned = desk.choose("turned block", choices)
    blocks = tuple(name for name in known if (name in parent.blocks) != (name == turned))
    return replace(parent, blocks=blocks, rng_seed=seed, slips=False)


def cross(parents: list[Proposal], profile: Profile, desk: Desk, prompt: str) -> Proposal:
    """Returns a blend on the blocks of both parents."""
    del prompt
    together = {name for parent in parents for name in parent.blocks}
    lows, highs = [parent.low for parent in parents], [parent.high for parent in parents]
    return Proposal(
        "blend",
        tuple(name for name in blocks_for(profile) if name in together),
        desk.rng_seed % 1000,
        low=next((low for low in lows if low is not None), None),
        high=next((high for high in highs if high is not None), None),
    )


def mend(parents: list[Proposal], prompt: str) -> Proposal:
    """Returns the script without its mistake, within the bounds that a complaint names, or a simpler one."""
    parent = parents[-1] if parents else Proposal("features")
    if parent.slips:
        return replace(parent, slips=False)
    low, high = read_bounds(complaint(prompt))
    bounded = replace(parent, low=parent.low if low is None else low, high=parent.high if high is None else high)
    if bounded != parent:
        return bounded
    return Proposal(_FALLBACK.get(parent.kind, "sample"), rng_seed=parent.rng_seed, low=parent.low, high=parent.high)


def analyze(prompt: str) -> Analysis:
    """Reads the output of a script as a careful reader would: how it ended, its score, what is wrong with it."""
    output = prompt.rpartition("\nOutput:\n")[2]
    works = "The script ended normally" in output and "has the right form" in output
    score = read_score_line(output)
    told = "It works." if works else complaint(output) or "It did not come to a valid submission."
    return Analysis(is_bug=not works, validation_score=score if works else None, summary=told)


def _profile_of(task: str, brief: Brief, seen: str) -> Profile | None:
    """Returns what is known of the rows, or of their pieces where they are to be taken apart."""
    if not brief.pieces:
        return read_profile(task, brief)
    profile = read_profile(seen, brief_of_pieces(brief))
    return None if profile is None else profile_of_pieces(profile, brief)


def _whole(action: JsonAction, brief: Brief) -> JsonAction:
    """Returns an action whose script takes the rows apart itself, since none finds what another one left."""
    code, folder = action.params.get("code", ""), f'"{PIECES}'
    if not brief.pieces or folder not in code or "os.makedirs" in code:
        return action
    return JsonAction(action.name, {"code": f"{unpack_script(brief.pieces, brief.n_pieces)}\n\n{code}"})


class _JsonForm(FencedGrammar):
    """Writes an engineer's moves as actions of ``mle_agent``; only for writing."""

    name = "mle_agent"

    @override
    def render(self, thought: str, action: Action) -> str:
        """Returns the JSON object of a move; there is no place for the thought."""
        del thought
        if action.kind is ActionKind.RUN:
            return render_json_action(JsonAction("execute_code", {"code": action.code}))
        return render_json_action(JsonAction("finish" if action.kind is ActionKind.FINISH else "get_history"))


def _asks_for_json(opening: Message) -> bool:
    return '{"action"' in opening.content and all(name in opening.content for name in ACTIONS)
