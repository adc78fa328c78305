"""What a survey says about one table directory: found, with the evidence, or quarantined, with the reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from headwater.catalogs.iceberg.packing import expand, keep, squeeze
from headwater.errors import UnreadableError

__all__ = [
    "TOLERABLE",
    "Found",
    "Outcome",
    "QuarantineCode",
    "Quarantined",
    "Rule",
    "Sketch",
    "UnfitError",
    "pack",
    "sketch_of",
    "unpack",
]


class QuarantineCode(StrEnum):
    """Why a table is not imported. The words are a contract: reports, status and the command line show them."""

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


class Rule(StrEnum):
    """Which rule decided that a metadata file is the latest."""

    ONLY_FILE = "only file"
    VERSION_HINT = "version hint"
    ROLLED_FORWARD = "version hint, rolled forward"
    HIGHEST_NUMBER = "highest number"
    METADATA_LOG = "metadata log"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A table or view that can be imported.

    key           what the path below the import location was mapped to, the name last
    uuid          None for a table of format version 1 that has none
    snapshot_id   None for a table without a current snapshot, and for a view
    log           metadata files before this one, oldest first, as the table's own metadata log has them
    paths         where it writes besides its directory
    elsewhere     folders of other places in which it has files that its metadata names
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
    rule: Rule
    evidence: tuple[str, ...]
    kind: Literal["table", "view"] = "table"
    version_id: int = 0
    versions: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    document: bytes = b""
    is_sound: bool = True
    log: tuple[str, ...]  # behind the document, which mostly ends with the same locations: so near, they pack to nothing


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A table directory that is left alone; ``message`` names the file and what to do."""

    directory: str
    key: tuple[str, ...]
    code: QuarantineCode
    message: str


Outcome = Found | Quarantined


class Sketch(NamedTuple):
    """Of a found table only what can contradict another: small enough to hold those of a whole lake."""

    directory: str
    key: tuple[str, ...]
    uuid: str | None


def sketch_of(found: Found) -> Sketch:
    return Sketch(found.directory, found.key, found.uuid)


def pack(outcome: Outcome, *, squeezed: bool = True) -> bytes:
    """An outcome with its document, for files and data frames of this release; ``unpack`` reads it.

    squeezed      in few bytes; else quickly
    """
    fields = (outcome, None) if isinstance(outcome, Found) else (None, outcome)
    data = msgspec.msgpack.encode(fields)
    return squeeze(data) if squeezed else keep(data)


def unpack(packed: bytes) -> Outcome:
    found, quarantined = _PACKED.decode(expand(packed))
    outcome = found or quarantined
    if outcome is None:
        raise UnreadableError("a packed outcome that holds none")
    return outcome


_PACKED = msgspec.msgpack.Decoder(tuple[Found | None, Quarantined | None])


class UnfitError(UnreadableError):
    """Within these rules: the table at hand is for quarantine, with this code."""

    def __init__(self, code: QuarantineCode, message: str) -> None:
        super().__init__(message)
        self.code = code
