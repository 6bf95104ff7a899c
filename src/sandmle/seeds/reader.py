"""Reads the catalogue that ships with the package.

The catalogue holds the 82 competitions of MLE-bench. The 22 of MLE-bench-Lite are for evaluation only: a task made from
one of them would train on the test. ``load_seed`` refuses them; the other 60 are seeds (paper, section 4).
"""

import difflib
from functools import cache
from importlib import resources
from types import MappingProxyType

import yaml

from sandmle.errors import SeedError
from sandmle.records import SeedRecord

_DATA_FILE = "data/catalogue.yaml"


def catalogue() -> tuple[SeedRecord, ...]:
    """Returns all 82 records, those of MLE-bench-Lite included, sorted by id without regard to case."""
    return tuple(_records().values())


def seed_ids() -> tuple[str, ...]:
    """Returns the ids of the 60 records that may be used as seeds, in the catalogue's order."""
    return tuple(record.id for record in catalogue() if not record.is_lite)


def load_record(seed_id: str) -> SeedRecord:
    """Returns any record of the catalogue, also one that may not be used as a seed.

    Raises:
        SeedError: There is no such record; the message names the nearest one.
    """
    records = _records()
    if seed_id in records:
        return records[seed_id]
    wanted = seed_id.lower()
    by_lower_case = {known.lower(): known for known in records}
    starts = [known for known in by_lower_case if wanted and known.startswith(wanted)]
    close = starts or difflib.get_close_matches(wanted, by_lower_case, n=1, cutoff=0.5)
    hint = f"did you mean {by_lower_case[close[0]]!r}?" if close else "`sandmle seeds list` shows all"
    raise SeedError(f"unknown seed {seed_id!r}; {hint}")


def load_seed(seed_id: str) -> SeedRecord:
    """Returns a record that tasks may be made from.

    Raises:
        SeedError: There is no such record, or it belongs to MLE-bench-Lite.
    """
    record = load_record(seed_id)
    if record.is_lite:
        raise SeedError(
            f"{seed_id!r} belongs to MLE-bench-Lite, which is for evaluation only; "
            "use one of the 60 seeds of `sandmle seeds list`"
        )
    return record


@cache
def _records() -> MappingProxyType[str, SeedRecord]:
    text = resources.files("sandmle.seeds").joinpath(_DATA_FILE).read_bytes()
    entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    records = [SeedRecord.model_validate(entry) for entry in entries]
    return MappingProxyType({record.id: record for record in sorted(records, key=lambda record: record.id.lower())})
