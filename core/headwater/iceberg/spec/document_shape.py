"""The shape of metadata documents: records declared as structs, the places where a JSON value differs from them, and the version.

msgspec checks a whole document against the declarations at once, faster than Python could look at one field. Only if it refuses,
the same declarations are walked for the place and the message: there is no second set of rules.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from headwater.errors import CorruptionError
from headwater.typed_values import convert

Document = Mapping[str, Any]

RAW_VERSION = 4
"""The table format whose specification is a draft: documents of it are kept as they are, and not judged."""
_CLOCK_SLACK_MS = 60_000
"""How far entries of a log may go back in time: writers' clocks differ. The same minute as in Iceberg's own reader."""
_SHOWN_CHARACTERS = 60
_SHOWN_IDS = 10

Int = Annotated[int, Meta(ge=-(2**31), lt=2**31, description="a 32-bit integer")]
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, description="a 64-bit integer")]
Unsigned = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a 64-bit integer from 0 on")]
Name = Annotated[str, Meta(min_length=1, description="a non-empty string")]
Uuid = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z", description="a uuid")]
Base64 = Annotated[
    str,
    Meta(
        pattern=r"\A([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?\Z",
        description="a string of bytes in base64",
    ),
]
Texts = dict[str, str]

_WORDS: dict[Any, str] = {str: "a string", bool: "true or false", float: "a number", Sequence: "a list"}


class FaultKind(Enum):
    """The kind of a document's fault."""

    UNSUPPORTED = "of a version that is not read"
    INVALID = "not of the shape that its version has"
    INCONSISTENT = "of the right shape, but one part contradicts another"


class FaultError(CorruptionError):
    """A document violates the specification. The message is half a sentence whose subject is the document."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def invalid(message: str) -> FaultError:
    return FaultError(FaultKind.INVALID, message)


def inconsistent(message: str) -> FaultError:
    return FaultError(FaultKind.INCONSISTENT, message)


class JsonRecord(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """An object with the fields that are read, by their names in JSON; others are ignored.

    A field whose type allows None is optional, and null counts as absent. A field of type Any is checked by a rule, where that applies.
    """


class ShapeFault(NamedTuple):
    """A value that differs from its declared shape. ``is_missing``: it is required, and absent or null."""

    path: str
    value: Any
    words: str
    is_missing: bool = False

    def error(self) -> FaultError:
        if self.is_missing:
            return invalid(f"has no {self.path}")
        return invalid(f"has {self.path} {shown_value(self.value)}, which is not {self.words}")

    def statement(self) -> str:
        return f"{self.path} is missing" if self.is_missing else f"{self.path} is not {self.words}"


def read_value(value: Any, shape: Any, path: str) -> Any:
    """Convert a value to its declared shape.

    shape         a JsonRecord, one of the types above, or a union of one with None
    path          the value's place in the document: ``snapshots[3].summary``
    raises        FaultError with the first place that differs
    """
    if value is None and not is_of(None, shape):
        raise invalid(f"has no {path}")
    try:
        return convert(value, shape)
    except msgspec.ValidationError as error:
        raise next(find_faults(value, shape, path)).error() from error


def is_of(value: Any, shape: Any) -> bool:
    try:
        convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True


def find_faults(value: Any, shape: Any, path: str) -> Iterator[ShapeFault]:
    """Every place of a value that differs from its declared shape, in the order of the declaration; none if msgspec accepts the value."""
    if is_of(value, shape):
        return
    shape = without_none(shape)
    holder = get_origin(shape) or shape
    is_record = isinstance(holder, type) and issubclass(holder, JsonRecord)
    if is_record and isinstance(value, Mapping):
        yield from _find_in_record(value, holder, path)
    elif holder is Sequence and isinstance(value, list):
        for at, element in enumerate(value):
            yield from find_faults(element, get_args(shape)[0], f"{path}[{at}]")
    elif holder is dict and isinstance(value, dict):
        for name, member in value.items():
            yield from find_faults(member, get_args(shape)[1], f"{path}[{shown_value(name)}]")
    else:
        yield ShapeFault(path, value, _words(shape))


def _find_in_record(record: Mapping[str, Any], shape: type[JsonRecord], path: str) -> Iterator[ShapeFault]:
    for field in msgspec.structs.fields(shape):
        value = record.get(field.encode_name)
        place = f"{path}.{field.encode_name}" if path else field.encode_name
        if value is None and field.required:
            yield ShapeFault(place, None, _words(field.type), is_missing=True)
        else:
            yield from find_faults(value, field.type, place)


def without_none(shape: Any) -> Any:
    """The one type of a value besides None."""
    return next(of for of in get_args(shape) if of is not NoneType) if get_origin(shape) in (Union, UnionType) else shape


def _words(shape: Any) -> str:
    """The type that a value should have, in words after "is not"."""
    if get_origin(shape) is Literal:
        words = get_args(shape)
        return f"one of {', '.join(words)}" if len(words) > 1 else repr(words[0])
    for meta in getattr(shape, "__metadata__", ()):
        return str(meta.description)
    return _WORDS.get(get_origin(shape) or shape, "an object")


def shown_value(value: Any) -> str:
    """A value in a sentence, never more than a few words of it."""
    if value is None:
        return "null"
    text = repr(value) if isinstance(value, str | int | float | bool) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def listed_ids(ids: Sequence[object]) -> str:
    """A few ids in a sentence."""
    return ", ".join(str(entry) for entry in ids[:_SHOWN_IDS]) + (", ..." if len(ids) > _SHOWN_IDS else "") or "none"


def check_unique(values: Collection[object], message: str) -> None:
    """Check that no value repeats; raises the FaultError of a message that shows the repeated one in the place of its ``{}``."""
    if len(set(values)) < len(values):
        raise inconsistent(message.replace("{}", shown_value(Counter(values).most_common(1)[0][0])))


class TimedEntry(JsonRecord, frozen=True):
    """A log entry: a value that was current, and since when or until when."""

    timestamp_ms: Long


def check_log(entries: Sequence[TimedEntry], name: str, *, until: int | None = None) -> None:
    """Check that the entries of a log are in order of time, none later than the document's own time.

    raises        FaultError
    """
    times = [entry.timestamp_ms for entry in entries]
    if until is not None:
        times.append(until)
    for at, (earlier, later) in enumerate(itertools.pairwise(times)):
        if later < earlier - _CLOCK_SLACK_MS:
            raise inconsistent(f"has a {name} that goes back in time by {earlier - later} ms after {name}[{at}]")


def is_view(document: Document) -> bool:
    """True for a view, even without its required uuid: it has versions, which no table has."""
    return "view-uuid" in document or ("table-uuid" not in document and {"versions", "current-version-id"} <= document.keys())


def version_of(document: Document) -> int:
    """The format version: 1 to 4 for a table, 1 for a view.

    raises        FaultError: it is absent or not supported
    """
    version = document.get("format-version")
    if version is None:
        raise invalid("has no format-version")
    if not is_of(version, Int):
        raise invalid(f"has format-version {shown_value(version)}, which is not an integer")
    most, what = (1, "view") if is_view(document) else (RAW_VERSION, "table")
    if not 1 <= version <= most:
        raise FaultError(FaultKind.UNSUPPORTED, f"has the {what} format version {version}: 1 to {most} are read")
    return int(version)


def is_maintainable(document: Document) -> str | None:
    """Why snapshots of a table must not be expired nor its files collected; None if they may.

    document      one that was read, of any version
    """
    if document.get("format-version") == RAW_VERSION:
        return f"its format version {RAW_VERSION} is a draft: which files it refers to cannot be determined yet"
    if document.get("encryption-keys"):
        return "it is encrypted: its manifests cannot be read without its keys"
    snapshots = document.get("snapshots")
    for snapshot in snapshots if isinstance(snapshots, list) else ():
        if isinstance(snapshot, dict) and snapshot.get("key-id") is not None:
            return f"its snapshot {snapshot.get('snapshot-id')} is encrypted: its manifests cannot be read without its key"
    return None
