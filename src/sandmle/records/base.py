"""The base of every record that is written to disk or sent over a wire."""

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value with known fields only. NaN and infinity are refused, so every record is strict JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
        use_attribute_docstrings=True,
    )

    def to_json(self) -> str:
        """Returns the record as one line of strict JSON, fields in the order of their declaration."""
        return self.model_dump_json()

    def to_dict(self) -> dict[str, Any]:
        """Returns the record as plain JSON types."""
        return self.model_dump(mode="json")

    def digest(self) -> str:
        """Returns the SHA-256 of the record's canonical JSON: equal records have equal digests."""
        return sha256_of(self.to_dict())

    def replace(self, **changes: Any) -> Self:
        """Returns a validated copy with some fields changed."""
        return type(self).model_validate({**{name: getattr(self, name) for name in type(self).model_fields}, **changes})


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys and no spaces, the form that digests are taken of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_of(value: Any) -> str:
    """Returns the SHA-256 of plain JSON data, independent of key order."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
