"""Expiry on one branch: its tables in the order of their keys, those that may have something to let go in batches.

Each stretch of keys is read from the branch's present state, so a run that takes hours reads no commit that was collected since. A
table that another commit changed meanwhile is decided anew from the newer state.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

import msgspec

from headwater.catalogs import CONTENT, IDS, ContentKey, ContentType, ContentValue, IcebergTable, stored_metadata_of
from headwater.catalogs.content import content_digest
from headwater.catalogs.stored_metadata import IcebergMetadata, read_metadata
from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.expiry.expiry_batch import ExpiredVersion, ExpiryCommitter
from headwater.expiry.expiry_counts import ExpiryCounts
from headwater.expiry.expiry_rules import ExpiryRules
from headwater.expiry.looked_tables import LookedTables, TableLook
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.iceberg.snapshot_expiry import ExpiredDocument, ExpiryPlan, plan_expiry, read_expiry_facts, without_expired
from headwater.iceberg.untrusted_document import parse_untrusted_table
from headwater.iceberg_catalog.branch_session import BranchSession, BranchState
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.index import Index
from headwater.store import ObjectId

_STRETCH = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_ROUNDS = 6
_FIRST_WAIT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryOrder:
    """What a run does on every branch.

    is_home       whether this catalog is the home of a table
    keys          only these tables; empty: all
    now_ms        the moment at which it is decided what goes
    batch         tables of one commit, at most
    is_dry        decide and count, and write nothing
    remembers     leave out what was looked at and is not due, and remember what is looked at
    """

    rules: ExpiryRules
    is_home: Callable[[UUID], bool]
    keys: Collection[ContentKey] = ()
    now_ms: int
    batch: int
    is_dry: bool = False
    remembers: bool = True


@dataclass(frozen=True, slots=True)
class BranchOrigin:
    """Where a branch parted from the default branch.

    content       what the two had in common
    default       the name of the default branch, which the run expires, too
    """

    content: Index
    default: str


class _TableEntry(msgspec.Struct, frozen=True):
    """A table in the index of a state."""

    key: ContentKey
    value: ContentValue

    @property
    def index_key(self) -> bytes:
        return self.key.to_index()


class BranchExpiry:
    """Expires the tables of one branch.

    origin        None: the default branch, or one that the run expires without the default branch
    check         asked before every stretch of tables and every batch; raises to stop
    wait_for      waits until so many tables may be changed
    """

    def __init__(
        self,
        session: BranchSession,
        files: LakeFiles,
        order: ExpiryOrder,
        counts: ExpiryCounts,
        *,
        origin: BranchOrigin | None,
        check: Callable[[], None],
        fence: Callable[[], None],
        wait_for: Callable[[int], None],
    ) -> None:
        self._session = session
        self._files = files
        self._order = order
        self._counts = counts
        self._origin = origin
        self._check = check
        self._fence = fence
        self._wait_for = wait_for
        self._committer = ExpiryCommitter(session.catalog, session.name, files, author=session.author, fence=fence)
        self._looked = LookedTables(session.rows, session.id, session.name)
        self._looks: dict[bytes, TableLook] = {}
        self._rules = order.rules.rules_digest[:8]

    def expire(self, passed: Callable[[int], None]) -> None:
        """Expire all tables that the order names.

        passed        told how many contents were passed
        """
        start: bytes | None = b""
        while start is not None:
            self._check()
            state = self._session.state()
            entries = [] if state.head is None else list(state.head.index(CONTENT).range(start, limit=_STRETCH))
            end = entries[-1][0] + b"\0" if len(entries) == _STRETCH else None
            tables = [
                _TableEntry(ContentKey.from_index(key), value)
                for key, value in ((key, ContentValue.from_value(value)) for key, value in entries)
                if value.type is ContentType.ICEBERG_TABLE
            ]
            self._expire_stretch(state, tables, start, end)
            passed(len(entries))
            start = end

    def _expire_stretch(self, state: BranchState, tables: Sequence[_TableEntry], start: bytes, end: bytes | None) -> None:
        self._looks = {}
        held = self._looked.read_looks(start, end) if self._order.remembers else {}
        asked = [table for table in self._at_home(tables) if self._is_due(table, held.get(table.index_key))]
        for attempt in range(_ROUNDS):
            if attempt:
                self._session.rows.clock.sleep(random.uniform(0, _FIRST_WAIT * 2**attempt))
                state = self._session.state()
                asked = list(self._now_at(state, [table.key for table in asked]))
            asked = self._expire_tables(state, asked)
            if not asked:
                break
            self._counts.conflicts += len(asked)
        self._counts.left += len(asked)
        if self._order.remembers and not self._order.is_dry:
            gone = held.keys() - {table.index_key for table in tables}
            changed = {key: look for key, look in self._looks.items() if held.get(key) != look}
            self._looked.remember_looks(changed, gone, fence=self._fence)

    def _at_home(self, tables: Sequence[_TableEntry]) -> Iterator[_TableEntry]:
        inherited = self._inherited(tables)
        for table in tables:
            if self._order.keys and table.key not in self._order.keys:
                continue
            if not self._order.is_home(table.value.content_id):
                self._counts.guests += 1
            elif table.key in inherited:
                self._counts.inherited += 1
            else:
                yield table

    def _inherited(self, tables: Sequence[_TableEntry]) -> set[ContentKey]:
        """The tables that the branch has as it got them, and that expire on the default branch.

        If they expired here, too, a merge would find them changed on both sides, though nobody changed them here.
        """
        if self._origin is None:
            return set()
        parted = self._origin.content.get_many(table.index_key for table in tables)
        return {
            table.key
            for table in tables
            if (then := parted.get(table.index_key)) is not None
            and ContentValue.from_value(then).digest == table.value.digest
            and self._expires_on_default(self._origin.default, table.value.content_id)
        }

    def _expires_on_default(self, default: str, content_id: UUID) -> bool:
        rules = self._order.rules
        return (
            rules.snapshot_limits(default, content_id, {}) is not None or rules.metadata_log_limits(content_id, {}) is not None
        )

    def _is_due(self, table: _TableEntry, look: TableLook | None) -> bool:
        if look is None or not look.holds(table.value.digest, self._rules, self._order.now_ms):
            return True
        self._counts.unchanged += 1
        if look.refusal is not None:
            self._counts.refused[look.refusal] += 1
        return False

    def _now_at(self, state: BranchState, keys: Sequence[ContentKey]) -> Iterator[_TableEntry]:
        """The home tables that stand at some keys now."""
        for key in keys:
            value = state.find_value(key)
            is_table = value is not None and value.type is ContentType.ICEBERG_TABLE
            if value is not None and is_table and self._order.is_home(value.content_id):
                yield _TableEntry(key, value)

    def _expire_tables(self, state: BranchState, tables: Sequence[_TableEntry]) -> list[_TableEntry]:
        """Look at tables, and commit what is decided; returns those that another commit changed."""
        entries, beaten = iter(tables), list[_TableEntry]()
        while some := list(islice(entries, self._order.batch)):
            self._check()
            versions: list[_DecidedVersion] = []
            for table, content, stored in self._read(state, some):
                decided = self._decide(state, table, content, stored)
                if decided is not None:
                    versions.append(decided)
                if sum(len(each.version.text) for each in versions) >= _BATCH_BYTES:
                    beaten += self._publish(state, versions)
                    versions = []
            beaten += self._publish(state, versions)
        return beaten

    def _read(
        self, state: BranchState, tables: Sequence[_TableEntry]
    ) -> Iterator[tuple[_TableEntry, IcebergTable, ObjectId | None]]:
        """The contents of tables, and where their documents are stored; in bulk, documents included."""
        assert state.head is not None
        ids = state.head.index(IDS)
        ids.get_many(table.value.content_id.bytes for table in tables)
        stored = {
            table.key: stored_metadata_of(ids, table.value.content_id) if table.value.has_metadata else None for table in tables
        }
        state.rows.read_many([each for each in stored.values() if each is not None], IcebergMetadata)
        contents = state.find_many([table.key for table in tables])
        for table in tables:
            content = contents.get(table.key)
            if isinstance(content, IcebergTable):
                yield table, content, stored[table.key]

    def _decide(
        self, state: BranchState, table: _TableEntry, content: IcebergTable, stored: ObjectId | None
    ) -> _DecidedVersion | None:
        """Look at a table, and make its next version if anything of it goes."""
        self._counts.looked += 1
        try:
            return self._decided(self._parts(state, table.key, content, stored), table, content)
        except (CorruptionError, NotFoundError, RefusedError) as fault:
            self._counts.unreadable += 1
            self._counts.add_note(f"table {table.key} of branch {self._session.name!r} was left alone: {fault}")
            return None

    def _parts(self, state: BranchState, key: ContentKey, content: IcebergTable, stored: ObjectId | None) -> MetadataParts:
        if stored is not None:
            return read_metadata(state.rows, stored)
        text = self._files.read_text(key, content.metadata_location)
        parse_untrusted_table(text, location=content.metadata_location)
        return split_metadata(text)

    def _decided(self, parts: MetadataParts, table: _TableEntry, content: IcebergTable) -> _DecidedVersion | None:
        order, content_id = self._order, table.value.content_id
        facts = read_expiry_facts(parts)
        if facts.refusal is not None:
            self._counts.refused[facts.refusal] += 1
            self._note(table, TableLook(table.value.digest[:8], self._rules, None, facts.refusal))
            return None
        limits = order.rules.snapshot_limits(self._session.name, content_id, facts.properties)
        keep_log = order.rules.metadata_log_limits(content_id, facts.properties)
        plan = plan_expiry(facts, limits, order.now_ms, keep_log=keep_log)
        if plan.leaves_all:
            self._note(table, TableLook(table.value.digest[:8], self._rules, plan.due_ms, None))
            return None
        before = content.metadata_location
        done = without_expired(parts, facts, plan, previous_file=before, now_ms=self._session.now_ms)
        file = self._files.new_file({"location": facts.location, "properties": facts.properties}, after=before)
        after = msgspec.structs.replace(content, metadata_location=file)
        version = ExpiredVersion.of(table.key, content_id, content, after, done.parts)
        return _DecidedVersion(table, version, plan, done)

    def _publish(self, state: BranchState, decided: Sequence[_DecidedVersion]) -> list[_TableEntry]:
        """Commit versions, and count and remember them; returns the tables that another commit changed."""
        if not decided:
            return []
        beaten: set[ContentKey] = set()
        if not self._order.is_dry:
            assert state.head is not None
            self._wait_for(len(decided))
            self._check()
            versions = [each.version for each in decided]
            beaten = {version.key for version in self._committer.commit_versions(versions, expected=state.head.id)}
            self._counts.commits += len(beaten) < len(versions)
        for each in decided:
            if each.table.key not in beaten:
                self._count(each)
        return [each.table for each in decided if each.table.key in beaten]

    def _count(self, decided: _DecidedVersion) -> None:
        counts, plan = self._counts, decided.plan
        counts.changed += 1
        counts.snapshots += len(plan.snapshots)
        counts.refs += len(plan.refs)
        counts.log_files += plan.log_files
        counts.log_entries += decided.document.log_entries
        counts.statistics += decided.document.statistics
        digest = content_digest(decided.version.content)
        self._note(decided.table, TableLook(digest[:8], self._rules, plan.due_ms, None))

    def _note(self, table: _TableEntry, look: TableLook) -> None:
        self._looks[table.index_key] = look


class _DecidedVersion(msgspec.Struct, frozen=True):
    """A table's next version, and what goes with it."""

    table: _TableEntry
    version: ExpiredVersion
    plan: ExpiryPlan
    document: ExpiredDocument
