"""Expiry of a table's snapshots by Iceberg's rules: what may go at a moment, and the document without it.

    refs          those go whose snapshot is older than their greatest age, and those whose snapshot is missing; ``main`` never goes
    snapshots     of each branch that stays, ancestors stay from its head back to the first that is beyond the number to keep and older
                  than the age; what a tag points to stays; what no branch and no tag reaches stays while it is younger than the age
    with them     their statistics; and of the snapshot log everything up to the last entry whose snapshot is gone

Documents come in pieces of JSON text, and pieces that stay keep their text: unknown fields, large numbers and fractions included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from headwater.errors import CorruptionError
from headwater.iceberg.metadata_json import MetadataParts, join_metadata
from headwater.typed_values import decode_json, json_decoder

MAIN = "main"
LOG_LENGTH = 100
"""How many earlier metadata files a log names where nothing says otherwise."""
LATEST_VERSION = 3
_SHORT_BYTES = 1024
_NO_SNAPSHOT = -1
_REFS, _SNAPSHOTS, _SNAPSHOT_LOG, _METADATA_LOG = "refs", "snapshots", "snapshot-log", "metadata-log"
_STATISTICS = ("statistics", "partition-statistics")


class ExpiryRefusal(StrEnum):
    """Why a table is left alone, whatever is asked."""

    GC_DISABLED = "GcDisabled"
    ENCRYPTED = "Encrypted"
    TOO_NEW = "FormatTooNew"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefLimits:
    """What one side says about a branch or tag; None: nothing."""

    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLimits:
    """What a table keeps.

    max_ref_age_ms  None: branches and tags stay for good
    least           what a branch or tag keeps even where its own limits ask for less
    """

    max_snapshot_age_ms: int
    min_snapshots_to_keep: int
    max_ref_age_ms: int | None = None
    least: RefLimits = field(default_factory=RefLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogLimits:
    """How many earlier metadata files a table names, and for how long; the last one is always named.

    max_age_ms    None: for good
    """

    keep: int
    max_age_ms: int | None = None


class _Snapshot(msgspec.Struct, frozen=True, gc=False):
    id: int = msgspec.field(name="snapshot-id")
    timestamp_ms: int = msgspec.field(name="timestamp-ms")
    parent: int | None = msgspec.field(name="parent-snapshot-id", default=None)
    key_id: str | None = msgspec.field(name="key-id", default=None)


class _Ref(msgspec.Struct, frozen=True, gc=False):
    snapshot_id: int = msgspec.field(name="snapshot-id")
    type: str | None = None
    max_snapshot_age_ms: int | None = msgspec.field(name="max-snapshot-age-ms", default=None)
    min_snapshots_to_keep: int | None = msgspec.field(name="min-snapshots-to-keep", default=None)
    max_ref_age_ms: int | None = msgspec.field(name="max-ref-age-ms", default=None)

    def limits(self) -> RefLimits:
        """Its own limits."""
        return RefLimits(
            max_snapshot_age_ms=self.max_snapshot_age_ms,
            min_snapshots_to_keep=self.min_snapshots_to_keep,
            max_ref_age_ms=self.max_ref_age_ms,
        )


class _OfSnapshot(msgspec.Struct, frozen=True, gc=False):
    snapshot_id: int = msgspec.field(name="snapshot-id")


class _LoggedFile(msgspec.Struct, frozen=True, gc=False):
    timestamp_ms: int = msgspec.field(name="timestamp-ms")


_read_snapshot = json_decoder(_Snapshot).decode
_read_ref = json_decoder(_Ref).decode
_read_owner = json_decoder(_OfSnapshot).decode
_read_logged = json_decoder(_LoggedFile).decode
_read_members = json_decoder(dict[str, msgspec.Raw]).decode
_read_texts = json_decoder(dict[str, str]).decode


@dataclass(frozen=True, slots=True)
class ExpiryFacts:
    """What expiry reads of a document: all in the order of the document.

    log_times     of the metadata log
    """

    format_version: int
    location: str
    snapshots: tuple[_Snapshot, ...]
    refs: Mapping[str, _Ref]
    current: int | None
    properties: Mapping[str, str]
    log_times: tuple[int, ...]
    updated_ms: int
    is_encrypted: bool

    @property
    def refusal(self) -> ExpiryRefusal | None:
        """Why the table is left alone; None where it is not."""
        if self.format_version > LATEST_VERSION:
            return ExpiryRefusal.TOO_NEW
        if self.is_encrypted:
            return ExpiryRefusal.ENCRYPTED
        # Iceberg takes everything that is not "true" for false
        return None if self.properties.get("gc.enabled", "true").lower() == "true" else ExpiryRefusal.GC_DISABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPlan:
    """What goes from a table.

    log_files     how many entries of the metadata log go
    keep_log      the limits by which they do
    due_ms        the first moment at which anything more could go if the table stays as it is; None: never
    """

    refs: frozenset[str]
    snapshots: frozenset[int]
    log_files: int
    keep_log: MetadataLogLimits
    due_ms: int | None

    @property
    def leaves_all(self) -> bool:
        return not self.refs and not self.snapshots and not self.log_files


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredDocument:
    """A document without what went; ``log_entries`` of its snapshot log and ``statistics`` files are no longer named."""

    parts: MetadataParts
    log_entries: int
    statistics: int


def read_expiry_facts(parts: MetadataParts) -> ExpiryFacts:
    """Read what expiry has to know.

    raises        CorruptionError for a document that is not as the specification says, with nothing of its values
    """
    try:
        facts = _facts(parts)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise CorruptionError(f"the metadata has a part that cannot be read for expiry: {fault}") from fault
    ids = {snapshot.id for snapshot in facts.snapshots}
    main = facts.refs.get(MAIN)
    current = {facts.current} - {None} | ({main.snapshot_id} if main is not None else set())
    if not current <= ids or len(current) > 1:
        raise CorruptionError("the metadata has a current snapshot that is not among its snapshots, or two of them")
    return facts


def _facts(parts: MetadataParts) -> ExpiryFacts:
    version = _field(parts, "format-version", int, 0)
    if version > LATEST_VERSION:  # of which nothing else is known
        return ExpiryFacts(version, "", (), {}, None, {}, (), 0, False)
    snapshots = tuple(map(_read_snapshot, parts.lists.get(_SNAPSHOTS, ())))
    refs = {name: _read_ref(piece) for name, piece in _members(parts, _REFS).items()}
    current = _field(parts, "current-snapshot-id", int, _NO_SNAPSHOT)
    properties = _read_texts(_map_text(parts, "properties"))
    return ExpiryFacts(
        format_version=version,
        location=decode_json(parts.fields.get("location", b"null"), str),
        snapshots=snapshots,
        refs=refs,
        current=None if current == _NO_SNAPSHOT else current,
        properties=properties,
        log_times=tuple(_read_logged(piece).timestamp_ms for piece in parts.lists.get(_METADATA_LOG, ())),
        updated_ms=_field(parts, "last-updated-ms", int, 0),
        is_encrypted="encryption-keys" in parts.lists
        or "encryption.key-id" in properties
        or any(snapshot.key_id is not None for snapshot in snapshots),
    )


def log_limits(properties: Mapping[str, str]) -> MetadataLogLimits:
    """How many earlier metadata files a table's own properties let it name."""
    text = properties.get("write.metadata.previous-versions-max", "")
    is_number = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11
    return MetadataLogLimits(keep=max(1, int(text)) if is_number else LOG_LENGTH)


def plan_expiry(
    facts: ExpiryFacts, limits: SnapshotLimits | None, now_ms: int, *, keep_log: MetadataLogLimits | None = None
) -> ExpiryPlan:
    """Decide what goes at a moment.

    limits        None: no snapshot and no ref goes
    keep_log      what somebody asks of the metadata log. None: nobody does, and no version is made for its sake; one that is made
                  keeps the log as the table's properties say
    """
    retention = None if limits is None else _Retention(facts, limits, now_ms)
    dues = [] if retention is None else retention.dues
    refs = frozenset() if retention is None else frozenset(facts.refs.keys() - retention.refs.keys())
    snapshots = frozenset() if retention is None else frozenset(retention.by_id.keys() - retention.kept)
    going = 0 if keep_log is None else len(facts.log_times) - _kept_files(facts.log_times, keep_log, now_ms)
    if keep_log is not None and keep_log.max_age_ms is not None:
        is_changed = going or refs or snapshots
        named = (*facts.log_times[going:], facts.updated_ms) if is_changed else facts.log_times
        dues = [*dues, *(time + keep_log.max_age_ms + 1 for time in named[:-1])]
    return ExpiryPlan(
        refs=refs,
        snapshots=snapshots,
        log_files=going,
        keep_log=keep_log or log_limits(facts.properties),
        due_ms=min((due for due in dues if due > now_ms), default=None),
    )


class _Retention:
    """What stays at a moment.

    dues          moments at which some of it may go
    """

    def __init__(self, facts: ExpiryFacts, limits: SnapshotLimits, now_ms: int) -> None:
        self._limits = limits
        self._now_ms = now_ms
        self.by_id = {snapshot.id: snapshot for snapshot in facts.snapshots}
        self.dues: list[int] = []
        self.refs = {name: ref for name, ref in facts.refs.items() if name == MAIN or self._stays(ref)}
        self.kept: set[int] = set()
        self._reached: set[int] = set()
        for ref in self.refs.values():
            self._keep_of(ref)
        if facts.current is not None and MAIN not in facts.refs:  # format version 1 may name no refs
            self._keep_of(_Ref(facts.current, "branch"))
        self._keep_unreached()

    def _stays(self, ref: _Ref) -> bool:
        snapshot = self.by_id.get(ref.snapshot_id)
        if snapshot is None:
            return False
        age = _limit(ref.max_ref_age_ms, self._limits.least.max_ref_age_ms, self._limits.max_ref_age_ms)
        if age is not None:
            self.dues.append(snapshot.timestamp_ms + age + 1)
        return age is None or self._now_ms - snapshot.timestamp_ms <= age

    def _keep_of(self, ref: _Ref) -> None:
        if str(ref.type).lower() == "tag":
            self.kept.add(ref.snapshot_id)
            self._reached.add(ref.snapshot_id)
            return
        least, table = self._limits.least, self._limits
        age = _limit(ref.max_snapshot_age_ms, least.max_snapshot_age_ms, table.max_snapshot_age_ms) or 0
        count = _limit(ref.min_snapshots_to_keep, least.min_snapshots_to_keep, table.min_snapshots_to_keep) or 0
        is_over = False
        for at, snapshot in enumerate(self._ancestors(ref.snapshot_id)):
            self._reached.add(snapshot.id)
            # the first that may go ends the walk, however young the ones behind it are
            is_over = is_over or (at >= max(count, 1) and snapshot.timestamp_ms < self._now_ms - age)
            if not is_over:
                self.kept.add(snapshot.id)
                if at >= max(count, 1):
                    self.dues.append(snapshot.timestamp_ms + age + 1)

    def _keep_unreached(self) -> None:
        age = self._limits.max_snapshot_age_ms
        for snapshot in self.by_id.values():
            if snapshot.id not in self._reached and snapshot.timestamp_ms >= self._now_ms - age:
                self.kept.add(snapshot.id)
                self.dues.append(snapshot.timestamp_ms + age + 1)

    def _ancestors(self, snapshot_id: int | None) -> Iterator[_Snapshot]:
        """A snapshot and its ancestors, as far as they are there; each once, also where they form a circle."""
        seen: set[int] = set()
        while snapshot_id is not None and snapshot_id not in seen and (snapshot := self.by_id.get(snapshot_id)) is not None:
            seen.add(snapshot_id)
            yield snapshot
            snapshot_id = snapshot.parent


def limits_of_ref(own: RefLimits, table: SnapshotLimits) -> RefLimits:
    """What counts for a branch or tag that has limits of its own."""
    least = table.least
    return RefLimits(
        max_snapshot_age_ms=_limit(own.max_snapshot_age_ms, least.max_snapshot_age_ms, table.max_snapshot_age_ms),
        min_snapshots_to_keep=_limit(own.min_snapshots_to_keep, least.min_snapshots_to_keep, table.min_snapshots_to_keep),
        max_ref_age_ms=_limit(own.max_ref_age_ms, least.max_ref_age_ms, table.max_ref_age_ms),
    )


def _limit(own: int | None, least: int | None, otherwise: int | None) -> int | None:
    """What counts for a branch or tag: its own limit, but no less than ``least``; where it has none, the table's."""
    return otherwise if own is None else max(own, own if least is None else least)


def _kept_files(times: tuple[int, ...], limits: MetadataLogLimits, now_ms: int) -> int:
    """How many of the newest entries of a metadata log stay."""
    kept = min(len(times), max(1, limits.keep))
    if limits.max_age_ms is None:
        return kept
    oldest = now_ms - limits.max_age_ms
    while kept > 1 and times[-kept] < oldest:
        kept -= 1
    return kept


def without_expired(
    parts: MetadataParts, facts: ExpiryFacts, plan: ExpiryPlan, *, previous_file: str, now_ms: int
) -> ExpiredDocument:
    """Make the next version's document: without what goes, with the file of the version before in its log.

    raises        CorruptionError for a snapshot log or statistics that cannot be read
    """
    lists, fields, maps = dict(parts.lists), dict(parts.fields), dict(parts.maps)
    result = MetadataParts(fields, lists, maps)
    try:
        _keep_elements(result, _SNAPSHOTS, lambda piece: _read_snapshot(piece).id not in plan.snapshots)
        statistics = sum(
            _keep_elements(result, name, lambda piece: _read_owner(piece).snapshot_id not in plan.snapshots)
            for name in _STATISTICS
        )
        logged = _cut_snapshot_log(result, facts, plan) if plan.snapshots else 0
        last_logged = lists.get(_SNAPSHOT_LOG, ())[-1:]
        newest = max((_read_logged(piece).timestamp_ms for piece in last_logged), default=0)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise CorruptionError(f"the metadata has a part that cannot be read for expiry: {fault}") from fault
    if plan.refs:
        _put_map(result, _REFS, {name: piece for name, piece in _members(parts, _REFS).items() if name not in plan.refs})
    entry = {"timestamp-ms": facts.updated_ms or now_ms, "metadata-file": previous_file}
    log = (*lists.get(_METADATA_LOG, ()), msgspec.json.encode(entry))
    times = (*facts.log_times, facts.updated_ms or now_ms)
    fields.pop(_METADATA_LOG, None)
    lists[_METADATA_LOG] = log[-_kept_files(times, plan.keep_log, now_ms) :]
    fields["last-updated-ms"] = b"%d" % max(now_ms, facts.updated_ms, newest)
    return ExpiredDocument(parts=result, log_entries=logged, statistics=statistics)


def _cut_snapshot_log(parts: MetadataParts, facts: ExpiryFacts, plan: ExpiryPlan) -> int:
    """Cut the log up to the last entry whose snapshot is gone, for a log with a gap would tell of states that never followed each other."""
    staying = {snapshot.id for snapshot in facts.snapshots} - plan.snapshots
    log = parts.lists.get(_SNAPSHOT_LOG, ())
    gone = [at for at, piece in enumerate(log) if _read_owner(piece).snapshot_id not in staying]
    if gone:
        _put_list(parts, _SNAPSHOT_LOG, log[gone[-1] + 1 :])
    return gone[-1] + 1 if gone else 0


def _keep_elements(parts: MetadataParts, name: str, stays: Callable[[bytes], bool]) -> int:
    """Keep some elements of a list; returns how many went."""
    before = parts.lists.get(name, ())
    after = tuple(piece for piece in before if stays(piece))
    if len(after) < len(before):
        _put_list(parts, name, after)
    return len(before) - len(after)


def _put_list(parts: MetadataParts, name: str, elements: Iterable[bytes]) -> None:
    pieces = tuple(elements)
    if pieces:
        parts.lists[name] = pieces
    else:
        parts.lists.pop(name, None)
        parts.fields[name] = b"[]"


def _put_map(parts: MetadataParts, name: str, members: dict[str, bytes]) -> None:
    """Put an object's members as ``split_metadata`` would have them: a small one is whole."""
    text = join_metadata(MetadataParts(members, {}))
    parts.maps.pop(name, None)
    parts.fields.pop(name, None)
    if len(text) > _SHORT_BYTES:
        parts.maps[name] = members
    else:
        parts.fields[name] = text


def _members(parts: MetadataParts, name: str) -> dict[str, bytes]:
    members = parts.maps.get(name)
    if members is not None:
        return members
    return {member: bytes(piece) for member, piece in _read_members(_map_text(parts, name)).items()}


def _map_text(parts: MetadataParts, name: str) -> bytes:
    """An object as JSON text; an empty one where it is absent or null."""
    if name in parts.maps:
        return join_metadata(MetadataParts(parts.maps[name], {}))
    text = parts.fields.get(name, b"{}")
    return b"{}" if text == b"null" else text


def _field(parts: MetadataParts, name: str, kind: Any, default: int) -> int:
    text = parts.fields.get(name, b"null")
    return default if text == b"null" else int(decode_json(text, kind))
