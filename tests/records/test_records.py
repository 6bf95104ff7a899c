import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sandmle.records import (
    CheckResult,
    ColumnSpec,
    Direction,
    ExecResult,
    ExecStatus,
    GateReport,
    Ladder,
    Rung,
    TaskSpec,
    Tier,
    Usage,
    Verdict,
    canonical_json,
    sha256_of,
)
from sandmle.records.execution import CollectedFile
from tests import bundles

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(value: float) -> None:
    with pytest.raises(ValidationError):
        CheckResult(check="x", verdict=Verdict.VALID, value=value)
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": value})


def test_records_are_frozen_and_refuse_unknown_fields() -> None:
    result = CheckResult(check="x", verdict=Verdict.VALID)
    with pytest.raises(ValidationError):
        result.check = "y"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        CheckResult.model_validate({"check": "x", "verdict": "valid", "colour": "red"})


def test_replace_validates() -> None:
    result = CheckResult(check="x", verdict=Verdict.VALID)
    assert result.replace(value=2.0).value == 2.0
    with pytest.raises(ValidationError):
        result.replace(value=math.nan)


@given(value=st.dictionaries(st.text(), PLAIN, max_size=5))
def test_n08_digests_do_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    assert sha256_of(value) == sha256_of(dict(reversed(value.items())))
    assert json.loads(canonical_json(value)) == value


@pytest.mark.parametrize("kind", bundles.KINDS)
def test_a_spec_survives_json(kind: str) -> None:
    spec = bundles.draft(kind).sealed_spec()
    assert TaskSpec.model_validate_json(spec.to_json()) == spec
    assert TaskSpec.model_validate(spec.to_dict()).task_hash == spec.task_hash


def test_a_spec_names_no_column_twice() -> None:
    spec = bundles.draft("regression").spec
    with pytest.raises(ValidationError, match="columns named twice: wear"):
        spec.replace(columns=(*spec.columns, ColumnSpec(name="wear", type="number")))


@pytest.mark.parametrize("task_id", ["", "../x", "A", "a b", "-a", "x" * 101])
def test_a_task_id_is_a_safe_folder_name(task_id: str) -> None:
    with pytest.raises(ValidationError):
        bundles.draft("regression").spec.replace(task_id=task_id)


@given(first=NUMBERS, second=NUMBERS, direction=st.sampled_from(Direction))
def test_direction_says_what_is_better(first: float, second: float, direction: Direction) -> None:
    assert direction.better(first, second) == (direction.at_least(first, second) and first != second)
    assert not (direction.better(first, second) and direction.better(second, first))
    assert (direction.gain(first, second) > 0) <= direction.better(first, second)


def test_the_best_rung_follows_the_direction() -> None:
    rungs = tuple(Rung(name=str(score), tier=Tier.WEAK, score=score) for score in (0.3, 0.1, 0.2))
    ladder = Ladder(metric="rmse", direction=Direction.MINIMIZE, n_rows=10, rungs=rungs)
    assert ladder.best().score == 0.1
    assert ladder.replace(direction=Direction.MAXIMIZE).best(Tier.WEAK).score == 0.3
    with pytest.raises(ValueError, match="no rung of oracle"):
        ladder.best(Tier.ORACLE)


def test_bytes_of_collected_files_survive_json() -> None:
    result = ExecResult(status=ExecStatus.OK, files=(CollectedFile(name="s.csv", data=b"\x00\xff,\n"),))
    again = ExecResult.model_validate_json(result.to_json())
    assert again.file("s.csv") == b"\x00\xff,\n"
    assert again.file("other") is None


def test_losses_are_what_was_not_passed() -> None:
    checks = tuple(CheckResult(check=verdict.value, verdict=verdict) for verdict in Verdict)
    report = GateReport(task_id="t", task_hash="h", verdict=Verdict.INVALID, checks=checks)
    assert [loss.check for loss in report.losses()] == ["invalid", "error", "timeout"]


def test_usage_adds_up_and_keeps_unknown_prices_apart() -> None:
    total = Usage(requests=1, cost_usd=0.5) + Usage(requests=2, retries=1)
    assert (total.requests, total.retries, total.cost_usd) == (3, 1, 0.5)
    assert (Usage() + Usage()).cost_usd is None
