"""Steps of random lakes that change branches, tags, the history and whole catalogs. LookupError says that there is nothing to do it to."""

from __future__ import annotations

from headwater.backup.realm_export import ExportOrder, export_realm
from headwater.catalogs import Catalogs
from headwater.errors import ExpiredError, NotFoundError
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId
from lake_oracle.lake_model import RefKey
from lake_oracle.random_lake import (
    DAY,
    LAKE,
    MAIN,
    OTHER,
    OTHER_MAIN,
    REALM,
    RandomLake,
)


def create_branch(lake: RandomLake) -> str:
    source, name = lake.chance.choice(lake.branches()), f"b{lake.number()}"
    head = lake.catalog().branch(source.name).head
    lake.catalog().create_branch(name, source.name, at=head)
    lake.model.create(MAIN._replace(name=name), source)
    return f"branch {name} from {source.name}"


def create_tag(lake: RandomLake) -> str:
    source, name = lake.chance.choice(lake.branches()), f"v{lake.number()}"
    lake.catalog().create_tag(name, source.name)
    lake.model.create(MAIN._replace(name=name), source, is_tag=True)
    return f"tag {name} from {source.name}"


def _refs(lake: RandomLake, *, is_tag: bool, is_deleted: bool = False) -> list[RefKey]:
    return [
        key
        for key, line in lake.model.lines.items()
        if key[:2] == MAIN[:2] and key != MAIN and line.is_tag == is_tag and line.is_deleted == is_deleted
    ]


def _choose(lake: RandomLake, refs: list[RefKey]) -> RefKey:
    if not refs:
        raise LookupError("there is none")
    return lake.chance.choice(refs)


def delete_ref(lake: RandomLake) -> str:
    is_tag = lake.chance.random() < 0.5
    ref = _choose(lake, _refs(lake, is_tag=is_tag))
    (lake.catalog().delete_tag if is_tag else lake.catalog().delete_branch)(ref.name)
    lake.model.lines[ref].is_deleted = True
    return f"delete {ref.name}"


def undelete_branch(lake: RandomLake) -> str:
    ref = _choose(lake, _refs(lake, is_tag=False, is_deleted=True))
    lake.catalog().undelete_branch(ref.name)
    lake.model.lines[ref].is_deleted = False
    return f"undelete {ref.name}"


def merge(lake: RandomLake) -> str:
    """Merge a branch whose tables nobody else has changed."""
    source = _choose(lake, _refs(lake, is_tag=False))
    theirs, ours = lake.model.state(source), lake.model.state(MAIN)
    base = [
        moment for moment in lake.model.lines[source].states if any(moment is mine for mine in lake.model.lines[MAIN].states)
    ]
    if not base:
        raise LookupError("what they have in common is forgotten")
    before = base[-1]
    names = {name for name in theirs.keys() | before.keys() if theirs.get(name) != before.get(name)}
    if not names or any(ours.get(name) != before.get(name) for name in names):
        raise LookupError("there is nothing to merge, or a conflict")
    owners = {version.owner: name for name, version in ours.items()}
    if any((version := theirs.get(name)) is not None and owners.get(version.owner, name) != name for name in names):
        raise LookupError("a table was renamed")
    try:
        lake.catalog().merge(source.name, "main")
    except ExpiredError as fault:
        raise LookupError("what they have in common is forgotten") from fault
    lake.note_state(MAIN, {name: theirs.get(name) for name in names})
    return f"merge {sorted(names)} of {source.name}"


def restore(lake: RandomLake) -> str:
    """Restore a branch to an earlier state that differs from the present one: otherwise there is no commit, and no state in the books."""
    moments = [moment for moment in lake.moments if moment[0] in lake.branches() and moment[2] != lake.model.state(moment[0])]
    if not moments:
        raise LookupError("there is no earlier state")
    ref, commit, state = lake.chance.choice(moments)
    if not any(state is kept for kept in lake.model.lines[ref].states):
        raise LookupError("it is forgotten")
    request = RestoreRequest(reference=f"{LAKE}/{ref.name}", aim=RestoreTarget(commit=ObjectId(commit)))
    try:
        restore_state(lake.rows(), ObjectId(4711 + lake.number()), request)
    except (ExpiredError, NotFoundError) as fault:
        if not lake.model.lines[ref].is_moved:
            raise
        raise LookupError("it is forgotten") from fault
    now = lake.model.state(ref)
    lake.note_state(ref, {name: state.get(name) for name in state.keys() | now.keys() if state.get(name) != now.get(name)})
    return f"restore {ref.name} to an earlier state"


def move_branch(lake: RandomLake) -> str:
    """Put a branch where another one is."""
    ref, target = _choose(lake, _refs(lake, is_tag=False)), lake.chance.choice(lake.branches())
    head = lake.catalog().branch(target.name).head
    if ref == target or head is None:
        raise LookupError("it is the same")
    lake.catalog().assign_branch(ref.name, head)
    lake.model.create(ref, target, is_moved=True)
    return f"assign {ref.name} to the head of {target.name}"


def collect(lake: RandomLake) -> str:
    lake.collect()
    return "collect garbage"


def hold_archive(lake: RandomLake) -> str:
    """Export the realm, and hold what the archive names."""
    if lake.model.pinned:
        raise LookupError("there is one")
    lake.clock.advance(3600)
    path, number = lake.folder / f"archive-{lake.number()}.hwx", lake.number()
    held = lake.clock.now() + round(60 * DAY * 1_000_000)
    export_realm(lake.store, ExportOrder(realm=REALM, file=path, time=None, task=ObjectId(4711 + number), held_until=held))  # type: ignore[arg-type]
    for key, line in lake.model.lines.items():
        if key.realm == REALM and not line.is_deleted:
            lake.model.pinned.update(line.states[-1].values())
    return "export the realm, and hold the archive"


def delete_other_catalog(lake: RandomLake) -> str:
    """Delete a catalog that may hold files of ours; until its hold is over it can be undeleted."""
    line = lake.model.lines.get(OTHER_MAIN)
    if line is None or line.is_deleted:
        raise LookupError("it is deleted")
    Catalogs(lake.rows()).delete_catalog(OTHER)
    if lake.chance.random() < 0.5:
        Catalogs(lake.rows()).undelete_catalog(OTHER)
        return "delete the other catalog, and undelete it"
    lake.collect()  # within the hold: nothing of it goes
    lake.clock.advance(4 * DAY)
    line.is_deleted = True
    held = {version for state in line.states for version in state.values()} & lake.model.stored
    lake.collect()  # the hold is over: it is being purged, and what it had may go with these two collections or later
    lake.model.unsure |= held - lake.model.stored
    return "delete the other catalog, and let its hold end"
