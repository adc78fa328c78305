"""Plan a restoration: one step for each reference, from its state at the target and the changes since. Writes nothing.

``RestoreRequest`` says which part of a realm is restored, and as of which commit or moment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    CatalogDefinition,
    Catalogs,
    CatalogState,
    RefKind,
    reference_text,
)
from headwater.catalogs.file_marks import FILE_MARKS, FILE_PLACES
from headwater.catalogs.registry import (
    BY_ID,
    REFS_INDEX,
    ListedRef,
    OwnRefKind,
    ParsedReference,
    content_reference,
    find_definition,
    listed_refs,
    own_reference,
    parse_reference,
    ref_key,
    relisted_since,
)
from headwater.clock import Micros
from headwater.commits import (
    PINS,
    AbsentReference,
    Head,
    check_reference_times,
    listed_extensions,
    load_head,
    no_state_error,
    pointer_as_of,
    read_commit,
    state_as_of,
)
from headwater.errors import CorruptionError, NotFoundError, RefusedError
from headwater.files import FILE_TABLES, list_file_tables, parse_tree_reference
from headwater.realms import FILLED_REFERENCES, REALM_REFERENCES
from headwater.restore.restore_target import RestoreRequest
from headwater.restore.state_diff import ChangeCounts, count_differences, indexes_of, state_differences
from headwater.store import ObjectId, RealmStore, Reference, id_text, is_note


class RequestMoment(NamedTuple):
    """The time of a request, and whether an earlier attempt may have done a part of it. Later changes of others stay.

    Only a second attempt may conclude that a reference needs nothing because it needed nothing then: clocks may differ.
    """

    time: Micros
    is_resumed: bool = False


class RestoreAction(StrEnum):
    """The action on one reference or catalog."""

    RESTORE = "restore"
    """Commit on top, with the state of the target."""
    REVIVE = "revive"
    """Revive a deleted reference, and restore it if it pointed elsewhere then."""
    MOVE = "move"
    """Set a tag to the commit that it pointed to."""
    UPDATE = "update"
    """Restore fields of a catalog's definition."""
    DELETE = "delete"
    """Delete what was made later."""
    KEEP = "keep"
    """Leave it unchanged: it was made later, or others changed it since the restoration was requested."""
    LOSE = "lose"
    """It cannot be restored."""
    NOTHING = "nothing"
    """It is as it was."""

    @property
    def changes(self) -> bool:
        return self not in (RestoreAction.KEEP, RestoreAction.LOSE, RestoreAction.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreStep:
    """One reference, or (``reference`` empty) a catalog itself.

    text          the name that people use: ``lake/main``, ``grants``, ``lake``
    target        the commit whose state is wanted; None: the reference held nothing
    among         references in whose history the target may be, beside its own
    counts        changes by type, as far as the current head shows
    fields        the restored fields of a catalog
    """

    act: RestoreAction
    text: str
    reference: str = ""
    catalog: CatalogDefinition | None = None
    kind: RefKind | None = None
    name: str = ""
    target: ObjectId | None = None
    among: tuple[str, ...] = ()
    counts: Mapping[str, ChangeCounts] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def as_plain(self) -> dict[str, Any]:
        return {
            "reference": self.text,
            "act": self.act.value,
            "target": None if self.target is None else id_text(self.target),
            "changes": {kind: counts.as_plain() for kind, counts in self.counts.items()},
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """All steps, in order: what is revived comes before what is written to it."""

    steps: tuple[RestoreStep, ...]

    @property
    def is_needed(self) -> bool:
        return any(step.act.changes for step in self.steps)


_DERIVED = {
    CATALOGS: "restore a catalog by its name, or the whole realm",
    CLAIMS: "claims are taken anew for tables that come back",
    PINS: "it belongs to tasks",
    FILE_MARKS: "the next report of files makes it anew",
    FILE_PLACES: "it has to be as the markers in the lake are",
}
_OWN = tuple(name for name in REALM_REFERENCES if name not in _DERIVED)
_FIELDS = ("base_location", "allowed_locations", "default_branch", "properties")
"""The fields of a catalog that a restoration brings back. The others are up to its manager, or to the person who deletes."""
_LATER = "made later: it stays, unless --prune says otherwise"
_SINCE = "since this restoration was asked for: it stays so"
_EXTENSION = "it belongs to an extension, which alone knows what a state of it means: it stays as it is"
_FILES = "a file table is not restored: its rows are what its references say now, and its partition tree only grows"


def plan_restoration(rows: RealmStore, request: RestoreRequest, *, asked: RequestMoment | None = None) -> RestorePlan:
    """The steps that restore a realm or a part of it.

    asked         when it was requested: whatever was made, moved or deleted after that stays; None: now
    raises        NotFoundError for an unknown catalog or branch, or one that was not there · ExpiredError for a collected commit, or a
                  past that is no longer recorded · RefusedError when times are unreliable, or the request names nothing ·
                  CorruptionError when a catalog's definition of then is not there
    """
    return RestorePlan(tuple(_Planner(rows, request, asked).steps()))


class _Planner:
    def __init__(self, rows: RealmStore, request: RestoreRequest, asked: RequestMoment | None) -> None:
        self._rows = rows
        self._since = None if asked is None else asked.time
        self._is_resumed = asked is not None and asked.is_resumed
        self._aim = request.aim
        self._text = request.reference
        self._prune = request.prune
        self._catalogs = Catalogs(rows)

    def steps(self) -> Iterator[RestoreStep]:
        kind, name = self._meaning()
        if kind == "realm":
            yield from self._realm()
        elif kind == "reference":
            yield self._own(_checked_own(self._rows, name), name)
        elif "/" in name:
            yield self._branch_or_tag(*name.split("/", 1))
        else:
            yield from self._catalog(self._catalogs.read_catalog(name))

    def _meaning(self) -> tuple[str, str]:
        """Resolve the reference's text. A catalog may have the name of one of the realm's own references."""
        prefix, colon, rest = self._text.partition(":")
        if colon and prefix in ("catalog", "reference"):
            return prefix, rest
        if not self._text:
            return "realm", ""
        if self._text not in (*REALM_REFERENCES, PINS, FILE_TABLES, FILE_MARKS, FILE_PLACES):
            return "catalog", self._text
        if find_definition(self._rows, name=self._text) is not None:
            raise RefusedError(
                f"{self._text!r} is a catalog, and a reference of realm {self._rows.realm!r}: write catalog:{self._text} or"
                f" reference:{self._text}"
            )
        return "reference", self._text

    def _time(self) -> Micros:
        if self._aim.time is None:
            what = f"catalog {self._text!r}" if self._text else f"realm {self._rows.realm!r}"
            raise RefusedError(f"{self._aim} belongs to one reference: for the whole of {what} give a time")
        return self._aim.time

    def _realm(self) -> Iterator[RestoreStep]:
        time = self._time()
        yield from (self._own(name, name) for name in _OWN)
        row = self._rows.read_reference(CATALOGS, fresh=True)
        then = past_head(self._rows, row, time)
        entries = [] if then is None else [value for _, value in then.index(BY_ID).range()]
        definitions = self._rows.read_many(
            [value.object_id for value in entries if value.object_id is not None], CatalogDefinition
        )
        if len(definitions) != len(entries) or None in definitions:  # it would look as if it was made later
            raise CorruptionError(
                f"realm {self._rows.realm!r} listed a catalog at {self._aim} whose definition is not there: run `headwater fsck`"
            )
        alive = {
            definition.id: definition
            for definition in definitions
            if definition is not None and definition.state is CatalogState.ACTIVE
        }
        now = {definition.id: definition for definition in self._catalogs.list_catalogs().complete()}
        held = {definition.id: definition for definition in self._catalogs.list_deleted().complete()}
        for catalog_id, was in alive.items():
            if catalog_id in now:
                yield from self._catalog(now[catalog_id], was)
            elif catalog_id in held and held[catalog_id].is_held:
                yield from self._deleted_catalog(held[catalog_id], was)
            else:
                yield RestoreStep(act=RestoreAction.LOSE, text=was.name, catalog=was, note="it was purged: it cannot come back")
        for catalog_id, later in now.items():
            if catalog_id not in alive:
                yield self._later(RestoreStep(act=RestoreAction.KEEP, text=later.name, catalog=later), later.updated)
        for table in list_file_tables(self._rows):
            yield RestoreStep(act=RestoreAction.KEEP, text=table.name, note=_FILES)
        for entry in listed_extensions(self._rows):
            yield RestoreStep(act=RestoreAction.KEEP, text=entry.name, note=_EXTENSION)

    def _deleted_catalog(self, held: CatalogDefinition, was: CatalogDefinition) -> Iterator[RestoreStep]:
        taken = find_definition(self._rows, name=held.name)
        if taken is not None:
            note = f"another catalog has its name by now: `headwater catalog undelete` brings {held.id} back under another one"
            yield RestoreStep(act=RestoreAction.LOSE, text=held.name, catalog=held, note=note)
            return
        if self._is_newer(held.updated):
            yield RestoreStep(act=RestoreAction.KEEP, text=held.name, catalog=held, note=f"deleted {_SINCE}")
            return
        yield RestoreStep(act=RestoreAction.REVIVE, text=held.name, catalog=held)
        yield from self._catalog(held, was)

    def _catalog(self, now: CatalogDefinition, was: CatalogDefinition | None = None) -> Iterator[RestoreStep]:
        time = self._time()
        was = was or self._definition_at(now, time)
        refs = self._rows.read_reference(own_reference(now.id, OwnRefKind.REFS), fresh=True)
        names = past_names(self._rows, refs, now.id, time)
        listed = self._listed_now(refs)
        entries = {**names.listed, **listed}
        rows = self._rows.find_rows([entry.reference(now.id) for entry in entries.values()])
        for entry, row in zip(entries.values(), rows, strict=True):
            yield self._listed(now, entry, row, names)
        for part in (OwnRefKind.ROLES, OwnRefKind.GRANTS):
            yield self._own(own_reference(now.id, part), f"{now.name} ({part})")
        asked = self._definition_asked(now)
        fields = {
            name: getattr(was, name)
            for name in _FIELDS
            if getattr(was, name) != getattr(now, name) and getattr(asked, name) == getattr(now, name)
        }
        yield RestoreStep(
            act=RestoreAction.UPDATE if fields else RestoreAction.NOTHING,
            text=now.name,
            catalog=now,
            fields=fields,
            note=", ".join(fields),
        )

    def _definition_at(self, now: CatalogDefinition, time: Micros) -> CatalogDefinition:
        definition = self._past_definition(now.id, time)
        if definition is None or definition.state is not CatalogState.ACTIVE:
            raise no_state_error(self._rows.realm, f"catalog {now.name} ({now.id})", time, "it was made later")
        return definition

    def _definition_asked(self, now: CatalogDefinition) -> CatalogDefinition:
        """The catalog's definition when this was requested, so that later changes of others stay; the current one if none is recorded."""
        if self._since is None or not self._is_resumed:
            return now
        with suppress(RefusedError, NotFoundError):
            return self._past_definition(now.id, self._since) or now
        return now

    def _past_definition(self, catalog_id: str, time: Micros) -> CatalogDefinition | None:
        then = past_head(self._rows, self._rows.read_reference(CATALOGS, fresh=True), time)
        value = None if then is None else then.index(BY_ID).get(catalog_id.encode())
        return None if value is None or value.object_id is None else self._rows.find_object(value.object_id, CatalogDefinition)

    def _listed_now(self, refs: Reference) -> dict[bytes, ListedRef]:
        head = load_head(self._rows, refs)
        return {} if head is None else {entry.key: entry for entry in listed_refs(head.index(REFS_INDEX))}

    def _listed(self, catalog: CatalogDefinition, entry: ListedRef, row: Reference | None, names: PastNames) -> RestoreStep:
        """Plan one name that is listed then or now, with its row."""
        reference = entry.reference(catalog.id)
        text = f"{catalog.name}/{entry.name}"
        step = RestoreStep(
            act=RestoreAction.NOTHING, text=text, reference=reference, catalog=catalog, kind=entry.kind, name=entry.name
        )
        if row is None:
            note = "it was deleted, and collected after its grace: it cannot come back"
            return dataclasses.replace(step, act=RestoreAction.LOSE, note=note) if entry.key in names.listed else step
        if names.has_living(entry.key, row):
            return self._back(step, row, past_head(self._rows, row, self._time()))
        return self._later(step, entry.listed) if row.deleted is None else step

    def _later(self, step: RestoreStep, made: Micros) -> RestoreStep:
        if not self._prune:
            return dataclasses.replace(step, act=RestoreAction.KEEP, note=_LATER)
        if self._is_newer(made):
            return dataclasses.replace(step, act=RestoreAction.KEEP, note=f"made {_SINCE}")
        if step.kind is RefKind.BRANCH and step.catalog is not None and step.name == step.catalog.default_branch:
            return dataclasses.replace(step, act=RestoreAction.KEEP, note="it is the default branch: it stays")
        return dataclasses.replace(step, act=RestoreAction.DELETE, note="made later")

    def _is_newer(self, time: Micros | None) -> bool:
        return self._since is not None and time is not None and time > self._since

    def _branch_or_tag(self, catalog_name: str, name: str) -> RestoreStep:
        catalog = self._catalogs.read_catalog(catalog_name)
        rows = {kind: self._rows.find_row(content_reference(catalog.id, kind, name)) for kind in RefKind}
        existing = {kind: row for kind, row in rows.items() if row is not None}
        living = [kind for kind, row in existing.items() if row.deleted is None]
        kind = next(iter([*living, *existing]), None)
        if kind is None:
            raise NotFoundError(
                f"catalog {catalog_name!r} of realm {self._rows.realm!r} has no branch or tag {name!r}, nor a deleted one"
            )
        row = existing[kind]
        step = RestoreStep(
            act=RestoreAction.NOTHING, text=f"{catalog_name}/{name}", reference=row.name, catalog=catalog, kind=kind, name=name
        )
        if self._aim.commit is not None:
            target = self._of_catalog(catalog, read_commit(self._rows, self._aim.commit))
            return self._back(dataclasses.replace(step, among=tuple(self._all_names(catalog))), row, target)
        refs = self._rows.read_reference(own_reference(catalog.id, OwnRefKind.REFS), fresh=True)
        names, key = past_names(self._rows, refs, catalog.id, self._time()), ref_key(kind, name)
        if not names.has_living(key, row):
            raise no_state_error(self._rows.realm, reference_text(self._rows, row.name), self._time(), "it was not there then")
        return self._back(step, row, past_head(self._rows, row, self._time()))

    def _of_catalog(self, catalog: CatalogDefinition, head: Head) -> Head:
        if head.commit.properties.get("catalog") != catalog.id:
            raise NotFoundError(f"commit {id_text(head.id)} is not one of catalog {catalog.name!r}")
        return head

    def _all_names(self, catalog: CatalogDefinition) -> Sequence[str]:
        refs = self._rows.read_reference(own_reference(catalog.id, OwnRefKind.REFS), fresh=True)
        return [entry.reference(catalog.id) for entry in self._listed_now(refs).values()]

    def _own(self, reference: str, text: str) -> RestoreStep:
        """Plan a reference that is neither branch nor tag. It is never deleted alone."""
        if reference in _DERIVED:
            raise RefusedError(f"reference {reference!r} is not restored by itself: {_DERIVED[reference]}")
        step = RestoreStep(act=RestoreAction.NOTHING, text=text, reference=reference)
        row = self._rows.find_row(reference)
        if row is None:
            return step  # a realm of an earlier release, or an incomplete one
        if self._aim.commit is not None:
            return self._back(step, row, read_commit(self._rows, self._aim.commit))
        then = None if row.created > self._time() else past_head(self._rows, row, self._time())
        if then is None and reference in FILLED_REFERENCES:
            raise no_state_error(self._rows.realm, "the whole", self._time(), "it was filled later; name a later time")
        if row.created > self._time():
            return dataclasses.replace(step, note="made later")
        return self._back(step, row, then)

    def _back(self, step: RestoreStep, row: Reference, target: Head | None) -> RestoreStep:
        """The actions that bring a reference back to the state of ``target``."""
        step = dataclasses.replace(step, target=None if target is None else target.id)
        is_alive = row.deleted is None
        if self._is_newer(row.deleted):
            return dataclasses.replace(step, act=RestoreAction.KEEP, note=f"deleted {_SINCE}")
        if step.kind is RefKind.TAG and row.pointer != step.target and target is None:
            return dataclasses.replace(
                step, act=RestoreAction.LOSE, note="it was on no commit then, and a tag is not taken off again"
            )
        left = next((move.time for move in row.moves if not is_note(move)), None)
        if step.kind is RefKind.TAG and row.pointer != step.target and self._is_newer(left):
            return dataclasses.replace(step, act=RestoreAction.KEEP, note=f"moved {_SINCE}")
        if step.kind is RefKind.TAG:
            moved = RestoreAction.NOTHING if row.pointer == step.target else RestoreAction.MOVE
            return dataclasses.replace(step, act=moved if is_alive else RestoreAction.REVIVE)
        if is_alive and row.pointer == step.target:
            return step
        head = load_head(self._rows, row)
        counts = self._counts(step.reference, head, target)
        if counts and is_alive and self._was_as_wanted(row, target):
            return dataclasses.replace(step, act=RestoreAction.KEEP, note=f"committed to {_SINCE}")
        act = RestoreAction.REVIVE if not is_alive else RestoreAction.RESTORE if counts else RestoreAction.NOTHING
        return dataclasses.replace(step, act=act, counts=counts)

    def _was_as_wanted(self, row: Reference, target: Head | None) -> bool:
        """Whether nothing had to be done at the time of the request: then no attempt did anything, and others continued from there."""
        if self._since is None or not self._is_resumed or row.created > self._since:
            return False
        with suppress(RefusedError, NotFoundError):  # the reference moves too often to find out; do not wait for it
            asked = past_head(self._rows, row, self._since)
            return not self._counts(row.name, asked, target)
        return False

    def _counts(self, reference: str, now: Head | None, target: Head | None) -> Mapping[str, ChangeCounts]:
        return count_differences(
            state_differences(self._rows, reference, indexes_of(now, target), target, head=None if now is None else now.id)
        )


def _checked_own(rows: RealmStore, reference: str) -> str:
    """Check that a reference may be restored by its own name: one of the realm, or the roles or grants of a catalog.

    raises        RefusedError for branches and tags, whose tables take claims, and for lists of names, which must hold all that there is ·
                  NotFoundError for none such
    """
    match parse_reference(reference):
        case ParsedReference(part=OwnRefKind.ROLES | OwnRefKind.GRANTS) if rows.find_row(reference) is not None:
            return reference
        case ParsedReference(part=OwnRefKind.REFS):
            raise RefusedError(
                f"reference {reference!r} of realm {rows.realm!r} lists branches and tags, and is not restored by itself: restore the"
                " catalog by its name"
            )
        case ParsedReference(part=RefKind()):
            raise RefusedError(
                f"reference {reference!r} of realm {rows.realm!r} is a branch or tag: write it as catalog and name, such as lake/main"
            )
    if reference == FILE_TABLES or parse_tree_reference(reference):
        raise RefusedError(f"reference {reference!r} of realm {rows.realm!r} belongs to file tables: {_FILES}")
    if reference in (*REALM_REFERENCES, PINS, FILE_MARKS, FILE_PLACES):
        return reference
    if any(entry.name == reference for entry in listed_extensions(rows)):
        raise RefusedError(f"reference {reference!r} of realm {rows.realm!r} is not restored by itself: {_EXTENSION}")
    raise NotFoundError(f"realm {rows.realm!r} has no reference {reference!r} that can be restored")


@dataclass(frozen=True, slots=True)
class PastNames:
    """The branches and tags that a catalog listed at a moment.

    listed        by index key
    relisted      by reference, the first time after that moment at which it was listed again: until then it was deleted
    """

    rows: RealmStore
    time: Micros
    listed: Mapping[bytes, ListedRef]
    relisted: Mapping[str, Micros]

    def has_living(self, key: bytes, row: Reference) -> bool:
        """Whether a name was listed and its reference alive. RefusedError when the row's times are impossible."""
        check_reference_times(self.rows, row, self.time, what=partial(reference_text, self.rows, row.name))
        return key in self.listed and not isinstance(
            pointer_as_of(row, self.time, self.relisted.get(row.name)), AbsentReference
        )


def past_head(rows: RealmStore, row: Reference, time: Micros) -> Head | None:
    """The head of a reference at a moment; None if it had no commit yet, or did not exist. Raises as ``state_as_of`` does."""
    head = state_as_of(rows, row, time, what=partial(reference_text, rows, row.name))
    return None if isinstance(head, AbsentReference) else head


def past_names(rows: RealmStore, refs: Reference, catalog_id: str, time: Micros) -> PastNames:
    """The names that the reference ``refs`` of a catalog listed at a moment. Raises as ``state_as_of`` does."""
    then = past_head(rows, refs, time)
    listed = {} if then is None else {entry.key: entry for entry in listed_refs(then.index(REFS_INDEX))}
    again = {} if refs.pointer is None else relisted_since(rows, refs.pointer, catalog_id, since=time)
    return PastNames(rows, time, listed, again)
