"""Write a policy of your own and let it work on a task: the whole contract is one coroutine.

Run: python examples/own_policy.py TASK
"""

import asyncio
import sys
from pathlib import Path

from sandmle.env import Episode, EpisodeConfig
from sandmle.grading import Grader
from sandmle.policies.base import SamplingParams
from sandmle.records import Completion, Message
from sandmle.sandbox import open_sandbox
from sandmle.scaffolds import open_scaffold
from sandmle.tasks import load_bundle

SCRIPT = """\
```python
import pandas as pd

sample = pd.read_csv("input/sample_submission.csv")
sample.to_csv("submission.csv", index=False)
print(sample.shape)
```"""


class CopiesTheSample:
    """Hands in the sample submission: the least that is valid."""

    name = "copies-the-sample"

    async def generate(self, transcript: tuple[Message, ...], sampling: SamplingParams) -> Completion:
        """First turn: a script; second turn: hand in."""
        turns = sum(message.role == "assistant" for message in transcript)
        return Completion(text=SCRIPT if turns == 0 else "SUBMIT")

    async def aclose(self) -> None:
        """Holds nothing."""


def main(task: Path) -> None:
    """Runs one episode on a task."""
    bundle = load_bundle(task)
    config = EpisodeConfig(grammar="fenced")
    with open_sandbox() as sandbox:
        episode = Episode(bundle, sandbox=sandbox, grader=Grader(bundle), config=config)
        trajectory = asyncio.run(open_scaffold("react").run(episode, CopiesTheSample(), SamplingParams()))
    print(f"ended: {trajectory.status}, reward {trajectory.reward}")
    if trajectory.grade is not None:
        print(f"score {trajectory.grade.score}, medal {trajectory.grade.medal}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
