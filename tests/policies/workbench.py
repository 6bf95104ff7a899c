"""Plays scripted engineers without a sandbox: their scripts run in this process, which is safe since they are ours."""

import asyncio
import contextlib
import io
import os
import resource
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from sandmle.grading import Grader
from sandmle.grammars import get_grammar
from sandmle.policies.base import SamplingParams
from sandmle.policies.scripted import open_scripted
from sandmle.records import ActionKind, Direction, FinishReason, GradeReport, Message
from sandmle.tasks import Bundle

MAX_TURNS = 12


@dataclass
class Played:
    """One game: what was said, what ran, how it was graded."""

    messages: list[Message] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    n_off_form: int = 0
    is_finished: bool = False
    grade: GradeReport | None = None


def execute(code: str, folder: Path) -> tuple[bool, str]:
    """Runs a script in a folder; returns whether it ended well, and what it printed."""
    out = io.StringIO()
    before = Path.cwd()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, files[1]))  # a sandbox allows few open files as well
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            exec(compile(code, "script.py", "exec"), {"__name__": "__main__"})
    except SystemExit as stop:
        return not stop.code, f"{out.getvalue()}\n{stop.code or ''}"
    except Exception:  # what an agent sees of a broken script
        return False, f"{out.getvalue()}\n{traceback.format_exc()}"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        os.chdir(before)
    return True, out.getvalue()


def play(bundle: Bundle, name: str, folder: Path, *, rng_seed: int = 0, grammar: str = "react") -> Played:
    """Lets an engineer work on a task until it hands in."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "input").symlink_to(bundle.public_dir)
    grader, rules, policy = Grader(bundle), get_grammar(grammar), open_scripted(name, grammar)
    game = Played([Message(role="system", content="rules"), Message(role="user", content=bundle.description())])
    submission = folder / "submission.csv"
    for _ in range(MAX_TURNS):
        reply = asyncio.run(policy.generate(tuple(game.messages), SamplingParams(rng_seed=rng_seed)))
        parsed = rules.parse(reply.text, FinishReason.STOP)
        game.n_off_form += not parsed.in_form
        data = submission.read_bytes() if submission.exists() else None
        if parsed.action is None:
            observation = f"Nothing was run. {parsed.hint}"
        elif parsed.action.kind is ActionKind.FINISH:
            game.is_finished, game.grade = True, grader.grade(data)
            return game
        elif parsed.action.kind is ActionKind.SCORE:
            report = grader.grade(data, leaderboard="public")
            way = "higher" if report.direction is Direction.MAXIMIZE else "lower"
            observation = f"{report.metric}: {report.score} ({way} is better) on 300 test rows."
        else:
            game.codes.append(parsed.action.code)
            _, observation = execute(parsed.action.code, folder)
            if submission.exists():
                report = grader.grade(submission.read_bytes(), leaderboard="public")
                if not report.is_valid:
                    observation += f"\nsubmission.csv is there, but it is not valid: {report.message}"
        game.observations.append(observation)
        game.messages.append(Message(role="assistant", content=reply.text))
        game.messages.append(Message(role="user", content=rules.observation(observation)))
    return game
