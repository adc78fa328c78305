"""The outcome of a survey for each table directory: accepted, with the evidence, or quarantined, alone or for a conflict with another.

Outcomes hold whole metadata documents, and those of a large lake do not fit into memory. So ``pack_outcome`` turns an outcome
into bytes, which cost little time to compress, and ``OutcomeSpill`` keeps packed outcomes on disk while a survey lasts.

Where tables of one survey conflict, no evidence shows which of them is right, so all of them are quarantined.
``find_conflicts`` works over the identities of a whole survey, or over those of the tables that ``exclusive_keys`` finds to
contradict another: the verdicts are the same. Where two tables contradict each other in several ways, the first of these
counts: same uuid, same key, one directory within the other; and then, among tables that have none of these, a key that is the
namespace of another.
"""

from __future__ import annotations

import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from headwater.errors import CorruptionError
from headwater.typed_values import msgpack_decoder


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


class RejectedTable(CorruptionError):
    """Raised within these rules to quarantine the table at hand with this code."""

    def __init__(self, code: QuarantineCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class TableIdentity(NamedTuple):
    """The fields of an accepted table that can contradict another one: small enough to hold those of a whole lake."""

    directory: str
    key: tuple[str, ...]
    uuid: str | None


def identity_of(accepted: AcceptedTable) -> TableIdentity:
    return TableIdentity(accepted.directory, accepted.key, accepted.uuid)


def pack_outcome(outcome: SurveyOutcome, *, squeezed: bool = True) -> bytes:
    """Pack an outcome with its document, for files and data frames of this release; ``unpack_outcome`` reads it.

    squeezed      pack into few bytes; otherwise quickly
    """
    fields = (outcome, None) if isinstance(outcome, AcceptedTable) else (None, outcome)
    data = msgspec.msgpack.encode(fields)
    return compress_bytes(data) if squeezed else frame_bytes(data)


def unpack_outcome(packed: bytes) -> SurveyOutcome:
    accepted, quarantined = _PACKED.decode(expand_bytes(packed))
    outcome = accepted or quarantined
    if outcome is None:
        raise CorruptionError("a packed outcome that holds none")
    return outcome


_PACKED = msgpack_decoder(tuple[AcceptedTable | None, QuarantinedTable | None])


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


_NAMED = 5
"""How many of the directories that share something a verdict names; it always has their number."""


def find_conflicts(identities: Iterable[TableIdentity]) -> dict[str, QuarantinedTable]:
    """The verdicts, by directory, on tables that conflict with others.

    identities    one per directory
    """
    ordered = sorted(identities)
    verdicts: dict[str, QuarantinedTable] = {}

    def quarantine(table: TableIdentity, code: QuarantineCode, message: str) -> None:
        verdict = QuarantinedTable(directory=table.directory, key=table.key, code=code, message=message)
        verdicts.setdefault(table.directory, verdict)

    for trait, code, fault in (
        ("uuid", QuarantineCode.DUPLICATE_UUID, "have the same uuid: one is a copy, remove it"),
        ("key", QuarantineCode.DUPLICATE_KEY, "would get the same key: import them into two catalogs"),
    ):
        for sharing in _shared(ordered, attrgetter(trait)):
            directories = _listed([table.directory for table in sharing])
            for table in sharing:
                quarantine(table, code, f"{directories} {fault}")
    for table, other in _nestings(ordered):
        pair = _listed(sorted([table.directory, other], key=len))
        quarantine(table, QuarantineCode.NESTED, f"{pair} lie one within the other: move one of them")
    clear = [table for table in ordered if table.directory not in verdicts]
    keys = {table.key for table in clear}
    for table in clear:
        above = next((".".join(key) for key in _keys_above(table.key) if key in keys), None)
        if above is not None:
            fault = f"{'.'.join(table.key)} needs the namespace {above}, which is a table in this import"
            quarantine(table, QuarantineCode.KEY_TAKEN, f"{table.directory}: {fault}")
    return verdicts


def exclusive_keys(table: TableIdentity, locations: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns (exclusive, occupied): keys that no other table may have at all, and keys that no other table may have as exclusive.

    Two tables conflict if an exclusive key of one is on either list of the other.

    locations     the survey's, of which one holds the table: no other can lie above it
    """
    alone = [f"directory {table.directory}", _key_text(table.key)]
    if table.uuid is not None:
        alone.append(f"uuid {table.uuid}")
    here = f"{table.directory}/"
    least = max((len(location) for location in locations if here.startswith(f"{location}/")), default=0)
    around = [f"directory {directory}" for directory in _directories_above(table.directory) if len(directory) >= least]
    return alone, around + [_key_text(key) for key in _keys_above(table.key)]


def _key_text(key: Sequence[str]) -> str:
    return "key " + "\0".join(key)


def _directories_above(directory: str) -> list[str]:
    """The directories above a directory, the nearest first."""
    segments = directory.split("/")
    return ["/".join(segments[:length]) for length in range(len(segments) - 1, 0, -1)]


def _keys_above(key: Sequence[str]) -> list[tuple[str, ...]]:
    """The keys of the namespaces above a key, the shortest first."""
    return [tuple(key[:length]) for length in range(1, len(key))]


def _nestings(tables: Sequence[TableIdentity]) -> list[tuple[TableIdentity, str]]:
    """Tables within others, with the nearest around them; then tables around others, with the first within them."""
    by_directory = {table.directory: table for table in tables}
    inner: list[tuple[TableIdentity, str]] = []
    outer: list[tuple[TableIdentity, str]] = []
    for table in tables:
        around = [directory for directory in _directories_above(table.directory) if directory in by_directory]
        inner.extend((table, directory) for directory in around[:1])
        outer.extend((by_directory[directory], table.directory) for directory in around)
    return [*inner, *outer]


def _shared(tables: Sequence[TableIdentity], trait: Callable[[TableIdentity], Any]) -> Iterator[list[TableIdentity]]:
    """The tables that share a value, in their order. Found by sorting, which needs less memory than a dict of all."""
    with_trait = sorted((table for table in tables if trait(table) is not None), key=trait)
    for _, group in groupby(with_trait, key=trait):
        sharing = list(group)
        if len(sharing) > 1:
            yield sharing


def _listed(directories: Sequence[str]) -> str:
    more = len(directories) - _NAMED
    return " and ".join(directories[:_NAMED]) + (f" and {more} more" if more > 0 else "")
