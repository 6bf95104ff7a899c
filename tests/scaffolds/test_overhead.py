"""What scaffolds and episodes cost beside model and code."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from sandmle.env import Episode, EpisodeConfig
from sandmle.grading import Grader
from sandmle.policies import SamplingParams
from sandmle.scaffolds import BUILTIN, open_scaffold
from sandmle.tasks import Bundle
from tests.env.fakes import FakeSandbox
from tests.scaffolds.searching import Jobs, script
from tests.scaffolds.test_mle_agent import Saying, execute

N_STEPS = 20
LIMIT_S = 0.020

POLICIES: dict[str, Callable[[list[str]], Any]] = {
    "react": lambda scripts: Saying(f"I go on.\n```python\n{code}\n```" for code in scripts),
    "mle_agent": lambda scripts: Saying(execute(code) for code in scripts),
}


@pytest.mark.parametrize("scaffold", BUILTIN)
async def test_a_step_costs_at_most_20_ms_of_cpu(bundle: Bundle, grader: Grader, scaffold: str) -> None:
    scripts = [script(0.5 + number / 100, f"print {number}") for number in range(N_STEPS)]
    costs = []
    for _ in range(3):  # the least of three: others use the machine as well
        policy = POLICIES.get(scaffold, Jobs)(scripts)
        config = EpisodeConfig(grammar="fenced", max_turns=N_STEPS)
        episode = Episode(bundle, sandbox=FakeSandbox(), grader=grader, config=config)
        began_s = time.process_time()
        made = await open_scaffold(scaffold).run(episode, policy, SamplingParams())
        costs.append((time.process_time() - began_s) / N_STEPS)
        await episode.aclose()
        assert len([step for step in made.steps if step.exec_status]) == N_STEPS
    print(f"{scaffold}: {1000 * min(costs):.1f} ms of CPU a step")
    assert min(costs) <= LIMIT_S
