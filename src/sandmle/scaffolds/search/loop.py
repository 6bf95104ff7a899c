"""The loop of a tree search: choose a move, ask for a script, run it, judge it, write it down, go on."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sandmle.env import Episode, Trial
from sandmle.grammars.operators import Analysis, parse_analysis, parse_script, read_score_line
from sandmle.grammars.scan import clean_text
from sandmle.policies.base import Policy, SamplingParams
from sandmle.records import (
    ActionKind,
    ExecStatus,
    Message,
    ReplyStatus,
    SearchNode,
    StepRecord,
    Trajectory,
    TrajectoryStatus,
    Usage,
)
from sandmle.scaffolds.asking import Asker, Reply, failure_of
from sandmle.scaffolds.base import make_trajectory, start
from sandmle.scaffolds.information import look_at_files
from sandmle.scaffolds.journal import Journal, JournalEntry, JournalHead, open_journal
from sandmle.scaffolds.search.base import Move, SearchPolicy, dice_of
from sandmle.scaffolds.search.memory import MemoryScope, complexity_of, remembered
from sandmle.scaffolds.search.prompts import operator_message, system_message
from sandmle.scaffolds.search.tree import Tree, Tried

_FIRST_CALL = 2**32
"""Dice of model calls begin behind those of moves."""


@dataclass(frozen=True)
class SearchRules:
    """What a tree search does, beside where it goes.

    Attributes:
        policy: Chooses the moves.
        memory: What draft, improve and crossover are told of earlier scripts.
        debug_memory: What debug is told.
        uses_complexity: Tell how ambitious a script should be.
        k_fold: Folds that scripts are asked to validate with; None leaves the choice to the model.
        data_preview: Begin with a look at the files.
        max_tries: Replies to one request until one can be read.
        settings: Digest of all options, for the journal.
    """

    policy: SearchPolicy
    memory: MemoryScope
    debug_memory: MemoryScope
    uses_complexity: bool
    k_fold: int | None
    data_preview: bool
    max_tries: int
    settings: str


async def run_search(
    name: str,
    rules: SearchRules,
    episode: Episode,
    policy: Policy,
    sampling: SamplingParams,
    *,
    attempt: int,
    clock: Callable[[], float] = time.monotonic,
) -> Trajectory:
    """Runs an episode as a tree search and grades its best script by validation score. Never raises."""
    started_s = clock()
    asker = Asker(episode, policy, sampling, clock)
    tree = Tree(episode.bundle.spec.direction)
    system: tuple[Message, ...] = ()
    await start(episode)
    try:
        if episode.status is None:
            head = JournalHead(
                task_hash=episode.bundle.spec.task_hash,
                scaffold=name,
                settings=rules.settings,
                policy=policy.name,
                rng_seed=sampling.rng_seed,
            )
            with open_journal(episode.journal, head) as journal:
                search = _Search(rules, episode, asker, tree, journal)
                system = (await search.begin(),)
                while episode.status is None:
                    await search.advance(system)
    except Exception as error:  # a bug of ours, a full disk: the work done until here is kept
        episode.end(TrajectoryStatus.ROLLOUT_ERROR, failure_of("rollout", error))
    result = await episode.grade()
    return make_trajectory(
        episode,
        result,
        policy=policy.name,
        scaffold=name,
        attempt=attempt,
        messages=system,
        tally=asker.tally,
        wall_s=clock() - started_s,
        grammar="search",
        nodes=tree.nodes,
        chosen_node=tree.to_submit(),
    )


class _Search:
    """One search under way."""

    def __init__(self, rules: SearchRules, episode: Episode, asker: Asker, tree: Tree, journal: Journal) -> None:
        self._rules, self._episode, self._asker, self._tree, self._journal = rules, episode, asker, tree, journal
        self._dice = dice_of(asker.sampling.rng_seed)

    async def begin(self) -> Message:
        """Goes on from the journal, looks at the files, and returns the system message."""
        self._restore()
        episode = self._episode
        wants_look = self._rules.data_preview and episode.status is None
        overview = await look_at_files(episode) if wants_look else ""
        return system_message(
            episode.bundle.spec,
            episode.config,
            episode.bundle.description(),
            episode.bundle.public_paths(),
            overview,
            self._rules.k_fold,
        )

    async def advance(self, system: tuple[Message, ...]) -> None:
        """Makes one node, or ends the episode."""
        episode, tree = self._episode, self._tree
        n_steps, n_calls = len(episode.steps), len(self._asker.tally.calls)
        move = self._rules.policy.choose(tree, self._dice)
        tried = await self._make(move, system)
        if tried is None:
            return
        tree.tried.append(tried)
        chosen = tree.to_submit()
        if chosen is not None and (submission := tree.tried[chosen].submission) is not None:
            episode.choose(submission)
        self._write_down(tried, episode.steps[n_steps:], self._asker.tally.usage(n_calls))
        self._check_end()

    def _restore(self) -> None:
        entries = self._journal.entries
        for entry in entries:
            if entry.node is None:
                continue
            step = None if entry.node.step is None else next(s for s in entry.steps if s.index == entry.node.step)
            code, output = (step.code or "", step.observation) if step is not None else ("", "")
            self._tree.tried.append(Tried(entry.node, code, output, entry.submission))
            self._asker.tally.calls.append(entry.usage)
            self._asker.tally.model_s += sum(step.model_s for step in entry.steps)
        if entries:
            last = entries[-1]
            steps = [step for entry in entries for step in entry.steps]
            self._episode.restore(steps, used_s=last.used_s, tokens=last.tokens, cost_usd=last.cost_usd)
            chosen = self._tree.to_submit()
            if chosen is not None and (submission := self._tree.tried[chosen].submission) is not None:
                self._episode.choose(submission)
            self._check_end()

    def _write_down(self, tried: Tried, steps: tuple[StepRecord, ...], usage: Usage) -> None:
        used_s, tokens, cost_usd = self._episode.spent()
        self._journal.append(
            JournalEntry(
                steps=steps,
                node=tried.node,
                submission=tried.submission,
                usage=usage,
                used_s=used_s,
                tokens=tokens,
                cost_usd=cost_usd,
            )
        )

    def _check_end(self) -> None:
        episode, nodes = self._episode, self._tree.nodes
        config = episode.config
        empty = [node.step is None for node in nodes[-config.stuck_after :]]
        if len(nodes) >= config.max_turns:
            episode.end(TrajectoryStatus.MAX_TURNS)
        elif len(empty) == config.stuck_after and all(empty):
            only_empty = all(step.reply_status is ReplyStatus.EMPTY for step in episode.steps[-self._rules.max_tries :])
            episode.end(TrajectoryStatus.EMPTY_REPLY if only_empty else TrajectoryStatus.STUCK)

    async def _make(self, move: Move, system: tuple[Message, ...]) -> Tried | None:
        """Asks for a script and tries it; None when the episode ended before there was anything to keep."""
        request = self._request(move)
        for _ in range(self._rules.max_tries):
            reply = await self._ask(system, request)
            if reply is None:
                return None
            script = parse_script(reply.completion.text, reply.completion.finish_reason)
            if script.status is ReplyStatus.ACTION:
                return await self._try(move, system, request, reply)
            record = _record(request, reply, script.status, in_form=False, observation=script.hint)
            self._episode.log(record, reply.completion)
            if self._episode.status is not None:
                return None
        node = SearchNode(
            index=len(self._tree),
            operator=move.operator,
            parents=move.parents,
            is_buggy=True,
            analysis="No reply held a script.",
        )
        return Tried(node, "", "", None)

    def _request(self, move: Move) -> Message:
        rules, tree = self._rules, self._tree
        scope = rules.debug_memory if move.operator == "debug" else rules.memory
        told = [tree.tried[index] for index in remembered(tree, scope, move.parents) if index not in move.parents]
        hint = complexity_of(tree, move.parents) if rules.uses_complexity and move.operator != "debug" else None
        return operator_message(
            move.operator, parents=[tree.tried[index] for index in move.parents], memory=told, hint=hint
        )

    async def _try(self, move: Move, system: tuple[Message, ...], request: Message, reply: Reply) -> Tried | None:
        """Runs the script of a reply and has its output read."""
        episode = self._episode
        script = parse_script(reply.completion.text, reply.completion.finish_reason)
        trial = await episode.try_script(script.code)
        record = _record(request, reply, script.status, in_form=script.in_form, notes=script.notes)
        record = record.replace(action=ActionKind.RUN, code=script.code, **trial.fields())
        step = episode.log(record, reply.completion)
        if trial.result is None:
            return None
        node = SearchNode(
            index=len(self._tree),
            operator=move.operator,
            parents=move.parents,
            step=step.index,
            plan=script.plan,
            is_buggy=True,
        )
        tried = Tried(node, script.code, trial.text, trial.submission if trial.is_valid else None)
        analysis = await self._analyze(tried, trial, system)
        works = trial.result.status is ExecStatus.OK and trial.is_valid and not analysis.is_bug
        judged = node.replace(
            validation_score=analysis.validation_score,
            is_buggy=not works or analysis.validation_score is None,
            analysis=_with_doubt(analysis, read_score_line(trial.result.stdout)),
        )
        return Tried(judged, tried.code, tried.output, tried.submission)

    async def _analyze(self, tried: Tried, trial: Trial, system: tuple[Message, ...]) -> Analysis:
        """Has a model read the output; where none can, the line that scripts are asked to print has to do."""
        request = operator_message("analyze", parents=[tried])
        for _ in range(self._rules.max_tries):
            reply = None if self._episode.status is not None else await self._ask(system, request)
            if reply is None:
                break
            found = parse_analysis(reply.completion.text)
            status = ReplyStatus.FORMAT_ERROR if found is None else ReplyStatus.ACTION
            status = ReplyStatus.EMPTY if not reply.completion.text.strip() else status
            self._episode.log(_record(request, reply, status, in_form=found is not None), reply.completion)
            if found is not None:
                return found
        stdout = "" if trial.result is None else trial.result.stdout
        return Analysis(is_bug=False, validation_score=read_score_line(stdout), summary="")

    async def _ask(self, system: tuple[Message, ...], request: Message) -> Reply | None:
        # Each call has a seed of its own: two drafts with the same prompt are to differ.
        seed = int(self._dice(_FIRST_CALL + len(self._episode.steps)).integers(2**31))
        return await self._asker.ask((*system, request), rng_seed=seed)


def _with_doubt(analysis: Analysis, printed: float | None) -> str:
    """Returns the summary of an output, with a remark where the reading is not what the script printed."""
    read = analysis.validation_score
    if read is None or printed is None or abs(read - printed) <= 1e-3 * max(1.0, abs(printed)):
        return analysis.summary
    return f"{analysis.summary} (The score was read as {read:.6g}; the script printed {printed:.6g}.)".strip()


def _record(
    request: Message,
    reply: Reply,
    status: ReplyStatus,
    *,
    in_form: bool,
    observation: str = "",
    notes: tuple[str, ...] = (),
) -> StepRecord:
    return StepRecord(
        index=0,
        reply=clean_text(reply.completion.text),
        reasoning=clean_text(reply.completion.reasoning),
        reply_status=status,
        in_form=in_form,
        observation=observation,
        model_s=reply.model_s,
        notes=notes,
        prompt=(request,),
    )
