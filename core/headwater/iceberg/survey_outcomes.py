"""The outcome of a survey for one table directory: accepted, with the evidence, or quarantined, with the reason.

Outcomes hold whole metadata documents, and those of a large lake do not fit into memory. So ``pack_outcome`` turns an outcome
into bytes, which cost little time to compress, and ``OutcomeSpill`` keeps packed outcomes on disk while a survey lasts.
"""

from __future__ import annotations

import tempfile
import weakref
import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from headwater.errors import CorruptionError


class QuarantineCode(StrEnum):
    """The reason why a table is not imported. The texts are a contract: reports, status and the command line show them."""

    UNMAPPED = "Unmapped"
    NO_METADATA = "NoMetadata"
    AMBIGUOUS = "Ambiguous"
    HINT_AHEAD = "HintAhead"
    TWO_TABLES = "TwoTables"
    VANISHED = "Vanished"
    UNSETTLED = "Unsettled"
    NO_ACCESS = "NoAccess"
    TOO_LARGE = "TooLarge"
    UNKNOWN_CODEC = "UnknownCodec"
    CORRUPT = "Corrupt"
    IS_DELTA = "IsDelta"
    UNSUPPORTED_VERSION = "UnsupportedVersion"
    INVALID = "Invalid"
    INCONSISTENT = "Inconsistent"
    MISSING_FILES = "MissingFiles"
    BAD_MANIFEST = "BadManifest"
    LOCATION_MISMATCH = "LocationMismatch"
    OUTSIDE_ALLOWED = "OutsideAllowed"
    BAD_KEY = "BadKey"
    BAD_LOCATION = "BadLocation"
    DUPLICATE_KEY = "DuplicateKey"
    DUPLICATE_UUID = "DuplicateUuid"
    NESTED = "Nested"
    CLAIMED = "Claimed"
    KEY_TAKEN = "KeyTaken"
    DIFFERS = "Differs"
    NOT_FORWARD = "NotForward"
    DIVERGED = "Diverged"
    DROPPED = "Dropped"


TOLERABLE = frozenset({QuarantineCode.BAD_MANIFEST, QuarantineCode.INCONSISTENT, QuarantineCode.INVALID})
"""What an import may tolerate: where the letter of the specification is stricter than every engine."""


class ChoiceRule(StrEnum):
    """The rule that chose the latest metadata file."""

    ONLY_FILE = "only file"
    VERSION_HINT = "version hint"
    ROLLED_FORWARD = "version hint, rolled forward"
    HIGHEST_NUMBER = "highest number"
    METADATA_LOG = "metadata log"


class AcceptedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table or view that can be imported.

    key           the key mapped from the path below the import location, the name last
    uuid          None for a table of format version 1 that has none
    snapshot_id   None for a table without a current snapshot, and for a view
    log           metadata files before this one, oldest first, as the table's own metadata log has them
    paths         where it writes besides its directory
    elsewhere     folders outside of its places with files that its metadata names
    evidence      sentences on what was seen when the file was chosen
    is_sound      no fault was tolerated in its shape: what the specification asks for is there
    version_id    of a view: the version in force
    versions      of a view: the ids of the versions that its metadata tells of
    document      the metadata as plain JSON text
    """

    directory: str
    key: tuple[str, ...]
    metadata_location: str
    uuid: str | None
    format_version: int
    snapshot_id: int | None
    schema_id: int
    spec_id: int
    sort_order_id: int
    rule: ChoiceRule
    evidence: tuple[str, ...]
    kind: Literal["table", "view"] = "table"
    version_id: int = 0
    versions: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    document: bytes = b""
    is_sound: bool = True
    log: tuple[str, ...]  # right behind the document, which mostly ends with the same locations, these compress to nothing


class QuarantinedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table directory that is not imported; ``message`` names the file and the remedy."""

    directory: str
    key: tuple[str, ...]
    code: QuarantineCode
    message: str


SurveyOutcome = AcceptedTable | QuarantinedTable


class TableIdentity(NamedTuple):
    """The fields of an accepted table that can contradict another one: small enough to hold those of a whole lake."""

    directory: str
    key: tuple[str, ...]
    uuid: str | None


def identity_of(found: AcceptedTable) -> TableIdentity:
    return TableIdentity(found.directory, found.key, found.uuid)


def pack_outcome(outcome: SurveyOutcome, *, squeezed: bool = True) -> bytes:
    """Pack an outcome with its document, for files and data frames of this release; ``unpack_outcome`` reads it.

    squeezed      pack into few bytes; otherwise quickly
    """
    fields = (outcome, None) if isinstance(outcome, AcceptedTable) else (None, outcome)
    data = msgspec.msgpack.encode(fields)
    return compress_bytes(data) if squeezed else frame_bytes(data)


def unpack_outcome(packed: bytes) -> SurveyOutcome:
    found, quarantined = _PACKED.decode(expand_bytes(packed))
    outcome = found or quarantined
    if outcome is None:
        raise CorruptionError("a packed outcome that holds none")
    return outcome


_PACKED = msgspec.msgpack.Decoder(tuple[AcceptedTable | None, QuarantinedTable | None])


class RejectedTable(CorruptionError):
    """Raised within these rules to quarantine the table at hand with this code."""

    def __init__(self, code: QuarantineCode, message: str) -> None:
        super().__init__(message)
        self.code = code


_LENGTH_BYTES = 4
_ROOMY_BYTES = 256 * 1024 * 1024
"""So much of a disk is spent to save time: as much as one document may need anyway. What comes after is squeezed, to a fifth."""


class OutcomeSpill:
    """Outcomes in a temporary file that is deleted with this object: all are added first, then read as often as needed."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="headwater-survey-")  # noqa: SIM115  # closed below
        self._count = self._size = 0
        weakref.finalize(self, self._file.close)

    def append_outcome(self, outcome: SurveyOutcome) -> None:
        self.append_packed(pack_outcome(outcome, squeezed=self._size >= _ROOMY_BYTES))

    def append_packed(self, packed: bytes) -> None:
        """Append an outcome that ``pack_outcome`` packed elsewhere."""
        self._file.write(len(packed).to_bytes(_LENGTH_BYTES, "big"))
        self._file.write(packed)
        self._count += 1
        self._size += _LENGTH_BYTES + len(packed)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SurveyOutcome]:
        at = 0
        for _ in range(self._count):
            self._file.seek(at)
            length = int.from_bytes(self._file.read(_LENGTH_BYTES), "big")
            yield unpack_outcome(self._file.read(length))
            at += _LENGTH_BYTES + length


_SQUEEZE_FROM = 512
"""Below, it takes as long as all else that is done with the bytes, and saves next to nothing."""
_QUICK = 1
_WINDOW_BITS, _MEMORY = 13, 6
"""Measured on metadata of 20 KB: as small as with zlib's own measures, in two thirds of the time, for its state stays in the
processor's cache."""
_PLAIN, _SQUEEZED = b"\x00", b"\x01"


def compress_bytes(data: bytes) -> bytes:
    """Compress bytes; ``expand_bytes`` restores them."""
    if len(data) < _SQUEEZE_FROM:
        return frame_bytes(data)
    squeezer = zlib.compressobj(_QUICK, zlib.DEFLATED, _WINDOW_BITS, _MEMORY)
    return b"".join((_SQUEEZED, squeezer.compress(data), squeezer.flush()))


def frame_bytes(data: bytes) -> bytes:
    """Frame bytes without compression, for ``expand_bytes``."""
    return _PLAIN + data


def expand_bytes(packed: bytes) -> bytes | memoryview:
    rest = memoryview(packed)[1:]
    return zlib.decompress(rest) if packed[:1] == _SQUEEZED else rest
