"""Records of Avro files, as manifests and manifest lists are."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

__all__ = ["read_records"]

_BROKEN = (
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    ArithmeticError,
    AttributeError,
    StopIteration,
    struct.error,
    zlib.error,
)
"""What fastavro raises over bytes that are not what they seem: it checks little, and stumbles."""


def read_records(data: bytes) -> list[dict[str, Any]]:
    """All records of a file; raises ValueError when it is broken."""
    from fastavro import reader  # only who follows manifests needs it

    records: list[dict[str, Any]] = []
    try:
        for record in reader(io.BytesIO(data)):
            if not isinstance(record, dict):
                raise TypeError(f"a {type(record).__name__} is no record")
            records.append(record)
    except _BROKEN as fault:
        raise ValueError(f"broken Avro ({type(fault).__name__}: {fault})") from fault
    return records
