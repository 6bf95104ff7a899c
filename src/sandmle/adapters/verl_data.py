"""The parquet file that verl reads: one row a task. Needs no verl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from sandmle.env import EpisodeConfig
from sandmle.errors import ConfigError
from sandmle.tasks import Bundle
from sandmle.training.prompts import first_messages


def verl_rows(tasks: Mapping[str, Bundle], config: EpisodeConfig) -> list[dict[str, Any]]:
    """Returns the rows, in the order of the task ids.

    Args:
        tasks: Tasks by id; verl's workers have to see their folders under the same paths.
        config: The rules of the episodes: they stand in the prompt.
    """
    return [
        {
            "data_source": "sandmle",
            "agent_name": "sandmle",
            "prompt": [message.to_dict() for message in first_messages(tasks[task_id], config)],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index},
            "task_path": str(tasks[task_id].root.resolve()),
        }
        for index, task_id in enumerate(sorted(tasks))
    ]


def write_verl_parquet(tasks: Mapping[str, Bundle], config: EpisodeConfig, path: Path) -> None:
    """Writes the rows as parquet; an earlier file is replaced.

    Raises:
        ConfigError: There is no task, or the disk refuses.
    """
    if not tasks:
        raise ConfigError("there is no task to write; make some with: sandmle generate")
    partial = path.with_name(f".{path.name}.partial")
    try:
        pd.DataFrame(verl_rows(tasks, config)).to_parquet(partial)
        partial.rename(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
