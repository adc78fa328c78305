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

    try:
        records = list(reader(io.BytesIO(data)))
    except _BROKEN as fault:
        raise ValueError(f"broken Avro ({type(fault).__name__}: {fault})") from fault
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("its records are no records")
    return [record for record in records if isinstance(record, dict)]
