"""The parquet that verl reads."""

from pathlib import Path

import pandas as pd
import pytest

from sandmle.adapters.verl_data import write_verl_parquet
from sandmle.env import EpisodeConfig
from sandmle.errors import ConfigError
from sandmle.tasks import Bundle


def test_one_row_a_task(bundle: Bundle, tmp_path: Path) -> None:
    write_verl_parquet({bundle.task_id: bundle}, EpisodeConfig(), tmp_path / "train.parquet")
    (row,) = pd.read_parquet(tmp_path / "train.parquet").to_dict("records")
    assert row["agent_name"] == "sandmle"
    assert Path(row["task_path"]) == bundle.root
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["extra_info"]["index"] == 0


def test_mistakes_are_named(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no task"):
        write_verl_parquet({}, EpisodeConfig(), tmp_path / "train.parquet")
    with pytest.raises(ConfigError, match="cannot write"):
        write_verl_parquet({bundle.task_id: bundle}, EpisodeConfig(), tmp_path / "nowhere/train.parquet")
