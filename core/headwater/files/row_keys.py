"""Row keys: the types that the key of a file table may have, and bytes that sort as the keys do.

Bytes of a key: integers are 8 bytes big-endian with the sign bit flipped, text is UTF-8, binary is itself. Spark and Parquet sort text by
its UTF-8 bytes, too.
"""

from __future__ import annotations

import struct
from enum import StrEnum

from headwater.errors import RefusedError

RowKey = int | str | bytes
_LONG = struct.Struct(">Q")
_SIGN = 1 << 63
_RANGES = {"int": 1 << 31, "long": 1 << 63}
LONGEST_KEY_BYTES = 65_536


class RowKeyType(StrEnum):
    """The types of a row key, by Spark's names."""

    INT = "int"
    LONG = "long"
    STRING = "string"
    BINARY = "binary"

    def check(self, key: object) -> RowKey:
        """The key itself, if it has this type.

        raises        RefusedError that names the key and the type
        """
        if self in (RowKeyType.INT, RowKeyType.LONG):
            if isinstance(key, int) and not isinstance(key, bool) and -_RANGES[self.value] <= key < _RANGES[self.value]:
                return key
        elif (self is RowKeyType.STRING and isinstance(key, str)) or (self is RowKeyType.BINARY and isinstance(key, bytes)):
            return key
        raise RefusedError(f"{str(key)[:80]!r} is not a row key of type {self.value}")

    def encode_key(self, key: RowKey) -> bytes:
        """Bytes that compare as keys of this type do; raises as ``check`` does."""
        key = self.check(key)
        if isinstance(key, int):
            return _LONG.pack(key + _SIGN)
        try:
            return key.encode() if isinstance(key, str) else key
        except UnicodeEncodeError as fault:
            raise RefusedError(f"{key[:80]!r} is not a row key: it has a lone surrogate") from fault

    def decode_key(self, data: bytes) -> RowKey:
        """The key that ``encode_key`` made these bytes of."""
        if self in (RowKeyType.INT, RowKeyType.LONG):
            return int(_LONG.unpack(data)[0]) - _SIGN
        return data.decode() if self is RowKeyType.STRING else data

    def parse_key(self, text: str) -> RowKey:
        """A key that a person wrote: digits, text, or binary as hex digits."""
        try:
            return self.check(
                int(text)
                if self in (RowKeyType.INT, RowKeyType.LONG)
                else text
                if self is RowKeyType.STRING
                else bytes.fromhex(text)
            )
        except ValueError as fault:
            raise RefusedError(f"{text[:80]!r} is not a row key of type {self.value}") from fault
