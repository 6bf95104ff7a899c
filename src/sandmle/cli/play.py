"""``sandmle play``: step through one episode by hand, or from a program on a pipe."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from sandmle.cli.output import JsonOption, console, print_json
from sandmle.errors import ConfigError

if TYPE_CHECKING:
    from sandmle.env import SyncEpisode
    from sandmle.grammars import Grammar

_END_OF_REPLY = "."
_HELP = f"Write your reply, then a line with only a {_END_OF_REPLY} to send it; Ctrl-D ends the episode."


def command(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="A task's folder.")],
    grammar: Annotated[str, typer.Option(help="How replies name their action: fenced or react.")] = "fenced",
    feedback: Annotated[str, typer.Option(help="Scores shown: none, public or oracle.")] = "public",
    reward: Annotated[str, typer.Option(help="Reward preset: paper, release or sparse.")] = "paper",
    max_turns: Annotated[int, typer.Option(min=1, help="Replies in the episode.")] = 20,
    sandbox: Annotated[str, typer.Option(help="Sandbox backend: see `sandmle doctor`.")] = "forkserver",
    rng_seed: Annotated[int, typer.Option(help="Seeds the executions.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Steps through an episode; at its end it tells the grade and the reward.

    With --json one JSON object a line goes both ways. In: {"reply": TEXT}, or an action without its wrapping:
    {"action": "run", "code": TEXT}, {"action": "score"}, {"action": "finish"}. Out: an object with "type" reset
    (messages), step (observation, status, terminated, truncated), error (a line that cannot be read; nothing happened)
    and last result (grade, reward, terms, status). The end of the input ends the episode.

    Exit codes: 0 the submission was graded; 1 it was missing or invalid; 2 bad input, or our own fault.
    """
    from sandmle.env import Episode, EpisodeConfig, SyncEpisode, checked
    from sandmle.grading import Grader
    from sandmle.grammars import get_grammar
    from sandmle.sandbox import open_backend
    from sandmle.tasks import load_bundle

    bundle = load_bundle(task)
    config = checked(
        EpisodeConfig,
        {"grammar": grammar, "feedback": feedback, "reward": reward, "max_turns": max_turns, "episode_s": 86_400},
    )
    get_grammar(grammar)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    with open_backend(sandbox, workers=1) as opened:
        inner = Episode(bundle, sandbox=opened, grader=Grader(bundle), config=config, rng_seed=rng_seed)
        with SyncEpisode(inner) as episode:
            result = _play_json(episode, inner.grammar, sys.stdin) if as_json else _play_text(episode, sys.stdin)
    if result.failure is not None:
        raise typer.Exit(2)
    if result.grade is None or not result.grade.is_valid:
        raise typer.Exit(1)


def _play_json(episode: "SyncEpisode", grammar: "Grammar", lines: TextIO) -> Any:
    messages = episode.reset()
    _say(type="reset", messages=[message.to_dict() for message in messages])
    for line in lines:
        if not line.strip():
            continue
        try:
            reply = _read_order(line, grammar)
        except ConfigError as error:
            _say(type="error", message=str(error))
            continue
        step = episode.step(reply)
        _say(
            type="step",
            observation=step.observation,
            terminated=step.terminated,
            truncated=step.truncated,
            status=step.status,
            record=step.record.to_dict(),
        )
        if step.status is not None:
            break
    result = episode.grade()
    _say(
        type="result",
        status=result.status,
        reward=result.reward,
        terms=result.terms,
        grade=result.grade.to_dict() if result.grade else None,
        failure=result.failure.to_dict() if result.failure else None,
    )
    return result


def _say(**fields: Any) -> None:
    print_json(fields)
    sys.stdout.flush()


def _read_order(line: str, grammar: "Grammar") -> str:
    """Returns the reply that a line of JSON stands for."""
    from sandmle.grammars import Action
    from sandmle.records import ActionKind

    try:
        order = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError('not JSON; write one object a line, such as {"reply": "SUBMIT"}') from error
    if isinstance(order, dict) and isinstance(order.get("reply"), str):
        return str(order["reply"])
    action = order.get("action") if isinstance(order, dict) else None
    code = order.get("code", "") if isinstance(order, dict) else ""
    if action not in tuple(ActionKind) or not isinstance(code, str):
        raise ConfigError('give {"reply": TEXT} or {"action": "run" | "score" | "finish", "code": TEXT}')
    return grammar.render("", Action(ActionKind(action), code))


def _play_text(episode: "SyncEpisode", lines: TextIO) -> Any:
    screen = console()

    def show(text: str) -> None:
        screen.print(text, markup=False)

    for message in episode.reset():
        show(f"{message.content}\n")
    show(_HELP)
    for reply in _replies(lines):
        step = episode.step(reply)
        show(f"\n{step.observation}")
        if step.status is not None:
            break
    result = episode.grade()
    show(f"\nThe episode ended: {result.status}.")
    if result.grade is not None:
        show(f"Grade: {result.grade.message or result.grade.status}")
    show("Terms: " + ", ".join(f"{name} {value:.3g}" for name, value in result.terms.items()))
    show(f"Reward: {'none, for a fault that is not yours' if result.reward is None else f'{result.reward:.3f}'}")
    return result


def _replies(lines: TextIO) -> Iterator[str]:
    """Yields replies: each ends at a line with only a dot, the last one also at the end of the input."""
    reply: list[str] = []
    for line in lines:
        if line.rstrip("\r\n") == _END_OF_REPLY:
            yield "".join(reply)
            reply = []
        else:
            reply.append(line)
    if "".join(reply).strip():
        yield "".join(reply)
