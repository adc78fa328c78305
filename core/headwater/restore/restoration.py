"""Carry out a restoration: first pin, then revive what was deleted, commit on top of each reference, and last delete what was made later.

Every step reads the current state first and is idempotent: after an interruption, or in a second restoration, it does nothing.
The claims of restored tables are taken again before the commit that brings the tables back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

from headwater.catalogs import (
    CONTENT,
    HEADWATER,
    IDS,
    Catalog,
    CatalogChanges,
    CatalogDefinition,
    Catalogs,
    CatalogState,
    CommitMeta,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    IcebergView,
    RefKind,
    StoredPlaces,
    TableClaim,
    TableClaims,
    content_ids,
    normalise_location,
    stored_places,
)
from headwater.catalogs.known_metadata import note_forgotten
from headwater.catalogs.place_releases import check_coming, with_places_taken
from headwater.catalogs.registry import find_definition
from headwater.clock import Micros
from headwater.commits import (
    Commit,
    CommitResult,
    Head,
    Transaction,
    assign_reference,
    commit_change,
    pin_commits,
    read_commit,
    read_head,
    read_log,
    unpin_commits,
)
from headwater.errors import NotFoundError, RefusedError, SwapConflictError
from headwater.restore.restore_plan import RequestMoment, RestoreAction, RestoreStep, plan_restoration
from headwater.restore.restore_target import RestoreRequest
from headwater.restore.restored_copies import RestoredCopies
from headwater.restore.state_diff import StateDifference, indexes_of, state_differences
from headwater.store import ObjectId, RealmReader, RealmStore, id_text
from headwater.throttle import Fence, ProgressCallback, no_progress

_SHOWN, _SHOWN_BYTES = 100, 32 * 1024


@dataclass(slots=True)
class RestoreResult:
    """The result of a restoration.

    steps         one for each reference, as ``RestoreStep.as_plain`` says it; ``commit`` is the new one, or None
    conflicts     tables that stay away, each with the reason
    notes         what could not be restored, or was left unchanged
    """

    realm: str
    aim: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """The result for a task's outcome and a run's record: exact counts, and lists as long as there is room for them."""
        limit = _SHOWN
        while limit and len(msgspec.json.encode(self._shown(limit))) > _SHOWN_BYTES:
            limit //= 2
        return self._shown(limit)

    def _shown(self, limit: int) -> dict[str, Any]:
        changed = [step for step in self.steps if RestoreAction(step["act"]).changes]
        return {
            "realm": self.realm,
            "to": self.aim,
            "changed": len(changed),
            "steps": changed[:limit],
            "conflicts": len(self.conflicts),
            "stayedAway": self.conflicts[:limit],
            "notes": self.notes[:limit],
        }


def restore_state(
    rows: RealmStore,
    owner: ObjectId,
    request: RestoreRequest,
    *,
    asked: RequestMoment | None = None,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> RestoreResult:
    """Restore a realm, a catalog or one reference to an earlier state, by new commits.

    owner         the task, in whose name what is read stays pinned; its commits name it, so that a later attempt knows what is done
    asked         when the task was asked for: its commits are no older, and what others did after it stays; None: there are none
    raises        what ``plan_restoration`` raises, before anything is written · UnavailableError while a collection sweeps
    """
    plan = plan_restoration(rows, request, asked=asked)
    result = RestoreResult(rows.realm, str(request.aim))
    result.notes = [f"{step.text}: {step.note}" for step in plan.steps if step.act in (RestoreAction.KEEP, RestoreAction.LOSE)]
    if not plan.is_needed:
        unpin_commits(rows, owner, fence=fence)  # an earlier attempt may have done everything except this
        return result
    carrier = _Restoration(rows, request, result, fence, _TaskMark(owner, None if asked is None else asked.time))
    fence()
    _pin(rows, owner, plan.steps, fence)
    for done, step in enumerate(plan.steps):
        progress(done, len(plan.steps), "references restored")
        carrier.do_step(step)
    progress(len(plan.steps), len(plan.steps), "references restored")
    unpin_commits(rows, owner, fence=fence)
    return result


def _pin(rows: RealmStore, owner: ObjectId, steps: Sequence[RestoreStep], fence: Fence) -> None:
    """Pin everything that is read from, at once: nothing is restored if a part of it is garbage already."""
    wanted: dict[ObjectId, tuple[str, ...]] = {}
    for step in steps:
        if step.target is not None and step.act.changes:
            wanted[step.target] = (*wanted.get(step.target, ()), step.reference, *step.among)
    if wanted:
        pin_commits(rows, owner, wanted, fence=fence)


class _TaskMark(NamedTuple):
    """Identifies the commits of a restoration, so that a resumed one undoes nothing that others did after it."""

    owner: ObjectId
    since: Micros | None

    def find_done(self, rows: RealmReader, now: Head | None, has_state: Callable[[Head], bool]) -> ObjectId | None:
        """The commit by which this task restored a reference, if it did.

        has_state     whether a commit holds the wanted state
        """
        if now is None or self.since is None:
            return None
        oldest = self.since - rows.settings.clock_bound_seconds * 1_000_000
        for head in read_log(rows, now.id):
            if head.commit.time < oldest:
                return None
            if self._has_made(head.commit) or (self._may_have_made(head.commit) and has_state(read_commit(rows, head.id))):
                return head.id
        return None

    def _has_made(self, commit: Commit) -> bool:
        return bool(commit.properties.get("task") == id_text(self.owner))

    def _may_have_made(self, commit: Commit) -> bool:
        """Whether this task may have made the commit. An earlier release named its task only in the message, which anybody may
        choose: no proof.
        """
        words = CommitMeta.from_commit(commit).properties
        return "task" not in commit.properties and words.get("task") == (id_text(self.owner),)


class _Restoration:
    def __init__(self, rows: RealmStore, request: RestoreRequest, result: RestoreResult, fence: Fence, mark: _TaskMark) -> None:
        self._mark = mark
        self._rows = rows
        self._request = request
        self._result = result
        self._fence = fence

    def do_step(self, step: RestoreStep) -> None:
        made: ObjectId | None = None
        if step.reference:
            made = self._reference(step)
        elif step.catalog is not None:
            self._catalog(step, step.catalog)
        self._result.steps.append({**step.as_plain(), "commit": None if made is None else id_text(made)})

    def _catalog(self, step: RestoreStep, definition: CatalogDefinition) -> None:
        catalogs = Catalogs(self._rows)
        if step.act is RestoreAction.REVIVE:
            catalogs.undelete_catalog(definition.id, fence=self._fence)
        elif step.act is RestoreAction.UPDATE:
            self._update(catalogs, definition, dict(step.fields))
        elif step.act is RestoreAction.DELETE:
            self._delete_catalog(catalogs, definition)

    def _delete_catalog(self, catalogs: Catalogs, planned: CatalogDefinition) -> None:
        """Delete the planned catalog, and no other that has its name now."""
        now = find_definition(self._rows, catalog_id=planned.id)
        if now is None or now.state is not CatalogState.ACTIVE:
            return  # another process did
        self._fence()
        catalogs.delete_catalog(now.name, seen=now)

    def _update(self, catalogs: Catalogs, definition: CatalogDefinition, fields: dict[str, Any]) -> None:
        now = catalogs.read_catalog(definition.name)
        if now.id != definition.id:
            raise SwapConflictError(
                f"catalog {definition.name!r} of realm {self._rows.realm!r} was made anew meanwhile: look again"
            )
        branch = fields.get("default_branch", now.default_branch)
        if branch not in {named.name for named in catalogs.open_catalog(definition.name).branches()}:
            self._result.notes.append(f"{definition.name}: its default branch was {branch!r}, which cannot come back")
            del fields["default_branch"]
        self._fence()
        catalogs.update_catalog(now, **cast(CatalogChanges, fields))

    def _reference(self, step: RestoreStep) -> ObjectId | None:
        if step.act is RestoreAction.REVIVE:
            self._revive(step)
        elif step.act is RestoreAction.DELETE:
            self._delete(step)
            return None
        if step.kind is RefKind.TAG:
            if step.act in (RestoreAction.MOVE, RestoreAction.REVIVE):
                self._move(step)
            return None
        return self._restore(step) if step.act in (RestoreAction.RESTORE, RestoreAction.REVIVE) else None

    def _open(self, step: RestoreStep) -> Catalog:
        assert step.catalog is not None
        now = find_definition(self._rows, catalog_id=step.catalog.id)
        if now is None or now.state is not CatalogState.ACTIVE:
            raise SwapConflictError(
                f"catalog {step.catalog.name!r} of realm {self._rows.realm!r} was deleted meanwhile: look again"
            )
        return Catalog(self._rows, now)

    def _revive(self, step: RestoreStep) -> None:
        catalog = self._open(step)
        revive = catalog.undelete_branch if step.kind is RefKind.BRANCH else catalog.undelete_tag
        revive(step.name, fence=self._fence)

    def _delete(self, step: RestoreStep) -> None:
        catalog = self._open(step)
        delete = catalog.delete_branch if step.kind is RefKind.BRANCH else catalog.delete_tag
        try:
            delete(step.name, fence=self._fence)
        except NotFoundError:
            return  # another process did

    def _move(self, step: RestoreStep) -> None:
        row = self._rows.read_reference(step.reference, fresh=True)
        if step.target is None or row.pointer == step.target:
            return
        target = step.target
        if step.catalog is not None and step.kind is RefKind.BRANCH:
            note_forgotten(self._rows, step.catalog, row, target)
        self._fence()
        assign_reference(self._rows, step.reference, target, expected=row.pointer, among=step.among)

    def _restore(self, step: RestoreStep) -> ObjectId | None:
        """Commit the target's state on top, without tables whose files others have claimed."""
        return with_places_taken(self._rows, lambda: self._restore_once(step))

    def _restore_once(self, step: RestoreStep) -> ObjectId | None:
        target = None if step.target is None else read_commit(self._rows, step.target)
        now = read_head(self._rows, step.reference, fresh=True)

        def has_state(then: Head) -> bool:
            return not state_differences(self._rows, step.reference, indexes_of(then, target), target, head=then.id)

        done_before = self._mark.find_done(self._rows, now, has_state)
        if done_before is not None:
            return done_before
        differences = state_differences(
            self._rows, step.reference, indexes_of(now, target), target, head=None if now is None else now.id
        )
        claims = RestoredClaims()
        if step.catalog is not None and differences:
            claims = claim_restored_tables(self._rows, step.catalog.id, differences, target, fence=self._fence)
        done = self._commit(step, now, target, differences, claims)
        self._result.conflicts += [f"{step.text}: {reason}" for reason in claims.refused.values()]
        return done.commit_id if done.changed else None

    def _commit(
        self,
        step: RestoreStep,
        now: Head | None,
        target: Head | None,
        differences: list[StateDifference],
        claims: RestoredClaims,
    ) -> CommitResult[None]:
        refused = claims.refused
        shown = "nothing" if target is None else f"commit {id_text(target.id)}"
        names = list(indexes_of(now, target))
        copies = RestoredCopies(self._rows, target)  # kept over retries

        def change(tx: Transaction) -> None:
            is_seen = tx.head_id == (None if now is None else now.id)
            all_of = {*names, *(tx.head.indexes if tx.head is not None else ())}
            current = (
                differences
                if is_seen
                else state_differences(
                    tx.reader, step.reference, {name: tx.index(name) for name in sorted(all_of)}, target, head=tx.head_id
                )
            )
            wanted = _without(current, refused)
            if step.catalog is not None:
                check_coming(tx, step.catalog.id, _coming_contents(wanted) - claims.free)
            copies.read_ahead(wanted)
            copies.apply(tx, wanted)
            tx.set_message(
                f"restore to {shown}, as of {self._request.aim}" if self._request.aim.time else f"restore to {shown}"
            )

        copies.prepare(_without(differences, refused), now)  # a commit's own time is short
        author = self._request.author or HEADWATER
        properties: dict[str, Any] = {"task": id_text(self._mark.owner)} | (
            {} if target is None else {"restored": id_text(target.id)}
        )
        if step.catalog is not None:
            meta = CommitMeta(authors=(author,), properties={name: (value,) for name, value in properties.items()})
            properties = {"task": properties["task"], **meta.as_properties(step.catalog.id)}
        else:
            properties["authors"] = [author]
        return commit_change(self._rows, step.reference, change, properties=properties, fence=self._fence)


def _without(differences: Sequence[StateDifference], refused: Container[bytes]) -> list[StateDifference]:
    """The differences without the tables that stay away. The content under such a key stays, unless it returns to a key of its own."""

    def is_refused(difference: StateDifference) -> bool:
        return difference.index_name == CONTENT and difference.key in refused

    wanted = [difference for difference in differences if not is_refused(difference)]
    back = {
        ContentValue.from_value(difference.then).content_id
        for difference in wanted
        if difference.index_name == CONTENT and difference.then is not None
    }
    leaving = [
        difference._replace(then=None)
        for difference in differences
        if is_refused(difference) and difference.now is not None and ContentValue.from_value(difference.now).content_id in back
    ]
    return wanted + leaving


_METADATA = "metadata"


@dataclass(slots=True)
class RestoredClaims:
    """What came of the claims of tables and views that a restoration brings back.

    refused       the keys that cannot be restored because others have claimed their files, each with the reason
    free          the contents that come back without claims: they have no place, or shared it in the wanted state
    """

    refused: dict[bytes, str] = field(default_factory=dict)
    free: set[UUID] = field(default_factory=set)


def claim_restored_tables(
    rows: RealmStore, catalog_id: str, differences: Sequence[StateDifference], then: Head | None, *, fence: Callable[[], None]
) -> RestoredClaims:
    """Take the claims of the Iceberg tables and views that these differences bring back, in batches.

    then          the commit whose state is wanted: tables that shared files in it share them again
    """
    made = RestoredClaims()
    coming = [difference for difference in differences if _comes_back(difference)]
    batch = rows.settings.import_batch
    together: set[UUID] | None = None
    for start in range(0, len(coming), batch):
        part = coming[start : start + batch]
        wished = list(zip(part, _claims(rows, catalog_id, part, then), strict=True))
        wishes = {difference.key: claim for difference, claim in wished if claim is not None}
        made.free |= _coming_contents(difference for difference, claim in wished if claim is None)
        conflicts = TableClaims(rows).take_claims(list(wishes.values()), fence=fence) if wishes else ()
        if conflicts and together is None:
            together = set() if then is None else set(content_ids(then))
        keys = {claim: key for key, claim in wishes.items()}
        for conflict in conflicts:
            owner = conflict.owner
            if owner.catalog_id != catalog_id or owner.content_id not in (together or ()):
                key = keys[conflict.claim]
                made.refused[key] = f"{ContentKey.from_index(key)} stays away: {conflict}"
            else:
                made.free.add(conflict.claim.content_id)
    return made


def _coming_contents(differences: Iterable[StateDifference]) -> set[UUID]:
    return {
        ContentValue.from_value(difference.then).content_id
        for difference in differences
        if difference.index_name == CONTENT and difference.then is not None
    }


def _comes_back(difference: StateDifference) -> bool:
    """Whether the table is put where none was, or where another one is."""
    if difference.index_name != CONTENT or difference.then is None:
        return False
    then = ContentValue.from_value(difference.then)
    if then.type not in (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW):
        return False
    return difference.now is None or ContentValue.from_value(difference.now).content_id != then.content_id


def _claims(rows: RealmStore, catalog_id: str, part: Sequence[StateDifference], then: Head | None) -> list[TableClaim | None]:
    values = [ContentValue.from_value(difference.then) for difference in part if difference.then is not None]
    tables = _read_contents(rows, values)
    places = _places(rows, then, [value.content_id for value in values if value.has_metadata])
    return [
        None if table is None else _claim(catalog_id, value.content_id, table, places.get(value.content_id))
        for value, table in zip(values, tables, strict=True)
    ]


def _read_contents(rows: RealmStore, values: Sequence[ContentValue]) -> list[IcebergTable | IcebergView | None]:
    """Tables and views in the order of their values."""
    tables = [value.object_id for value in values if value.type is ContentType.ICEBERG_TABLE]
    views = [value.object_id for value in values if value.type is ContentType.ICEBERG_VIEW]
    found: dict[ObjectId, IcebergTable | IcebergView | None] = {}
    found.update(zip(tables, rows.read_many(tables, IcebergTable), strict=True))
    found.update(zip(views, rows.read_many(views, IcebergView), strict=True))
    return [found[value.object_id] for value in values]


def _places(rows: RealmStore, then: Head | None, content_ids: Sequence[UUID]) -> dict[UUID, StoredPlaces]:
    """The places of the tables whose metadata is stored with them."""
    if then is None or not content_ids:
        return {}
    stored = then.index(IDS).get_many([content.bytes for content in content_ids])
    metadata = {UUID(bytes=key): value.object_id for key, value in stored.items() if value.object_id is not None}
    places = stored_places(rows, list(metadata.values()))
    return {content_id: places[metadata_id] for content_id, metadata_id in metadata.items()}


def _claim(
    catalog_id: str, content_id: UUID, table: IcebergTable | IcebergView, places: StoredPlaces | None
) -> TableClaim | None:
    """The claim of a table; None for a table without a location: its committer may claim any place."""
    location = places.location if places is not None and places.location is not None else _folder(table)
    if not _is_place(location):
        return None
    uuid = table.table_uuid if isinstance(table, IcebergTable) else table.view_uuid
    return TableClaim(catalog_id, content_id, location, _uuid(uuid), () if places is None else places.paths)


def _is_place(folder: str) -> bool:
    try:
        normalise_location(folder)
    except RefusedError:
        return False
    return True


def _folder(table: IcebergTable | IcebergView) -> str:
    """The location of a table without stored metadata: the folder of its metadata file, or its parent where the folder has the
    usual name.
    """
    folder = table.metadata_location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return above if last == _METADATA else folder


def _uuid(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
