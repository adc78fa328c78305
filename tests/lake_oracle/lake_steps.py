"""The steps of random lakes. Each does one thing and returns what it did; LookupError says that there is nothing to do it to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from headwater.backup.realm_export import ExportOrder, export_realm
from headwater.catalogs import Catalogs, IcebergTable, Put, find_homes
from headwater.catalogs.known_metadata import own_name
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryWish
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog import IcebergCatalog, TableCommit, ViewCommit, ViewCreation
from headwater.iceberg_catalog.table_adoption import adopt_guests, list_table_homes
from headwater.restore import RestoreRequest, RestoreTarget, restore_state
from headwater.store import ObjectId
from lake_oracle.foreign_tables import ADDED, DELETED, EXISTING, ForeignTable, plain
from lake_oracle.lake_model import RefKey
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import (
    DAY,
    LAKE,
    MAIN,
    OTHER,
    OTHER_REALM,
    REALM,
    RandomLake,
    careless_sibling,
    own_uuid,
)

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "city", StringType(), required=False))
_SPECS = (
    PartitionSpec(),
    PartitionSpec(),
    PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city")),
    PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "_the city %")),
    PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"), PartitionField(2, 1001, IdentityTransform(), "city")),
)
_VIEW_SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
OTHER_MAIN, ZETA_MAIN = RefKey(REALM, OTHER, "main"), RefKey(OTHER_REALM, LAKE, "main")
_MAPPING = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["city"]}]'


def create_table(lake: RandomLake) -> str:
    chance, name = lake.chance, f"t{lake.number()}"
    folder = chance.choice(
        ["", "", f"{name} with space", f"{name}%20percent", f"Ünï {name}", f"UPPER/{name}", f"dot.{name}/_x"]
    )
    spelled = chance.choice(["file://", "file://", "file:"])
    location = f"{spelled}{lake.base}/{folder}" if folder else None
    properties = {"format-version": chance.choice(["1", "2", "2"])}
    if chance.random() < 0.4:
        properties["write.metadata.previous-versions-max"] = "2"
    if chance.random() < 0.2:
        properties["write.metadata.compression-codec"] = "gzip"
    if chance.random() < 0.2:
        properties["write.object-storage.enabled"] = "true"
    if chance.random() < 0.2:
        properties["write.data.path"] = f"file://{lake.base}/data of/{name}"
    if chance.random() < 0.1:
        properties["write.metadata.path"] = f"file://{lake.base}/meta/{name}"
    ref, spec = chance.choice(lake.branches()), chance.choice(_SPECS)
    given = properties | {"schema.name-mapping.default": _MAPPING}
    lake.client(ref).create_table(f"sales.{name}", SCHEMA, location=location, partition_spec=spec, properties=given)
    lake.made.update(version.owner for version in lake.note(ref, name, is_home=True))
    by = [field.name for field in spec.fields]
    return f"create {name} on {ref.name} at {location} by {by} with {properties}"


def append(lake: RandomLake) -> str:
    ref, name, _ = lake.any_table(made=True)
    lake.client(ref).load_table(f"sales.{name}").append(lake.some_rows())
    lake.note(ref, name)
    return f"append to {name} on {ref.name}"


def overwrite(lake: RandomLake) -> str:
    ref, name, _ = lake.any_table(made=True)
    lake.client(ref).load_table(f"sales.{name}").overwrite(lake.some_rows())
    lake.note(ref, name)
    return f"overwrite {name} on {ref.name}"


def delete_rows(lake: RandomLake) -> str:
    ref, name, version = lake.any_table(made=True)
    number = lake.chance.randrange(5)
    lake.client(ref).load_table(f"sales.{name}").delete(f"id = {number}")
    if lake.version(ref, name) == version:
        raise LookupError("there is no such row")
    lake.note(ref, name)
    return f"delete id {number} from {name} on {ref.name}"


def tag_snapshot(lake: RandomLake) -> str:
    ref, name, version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    if not table.snapshots():
        raise LookupError("there is no snapshot")
    snapshot = lake.chance.choice(table.snapshots())
    what = f"ref{lake.number()}"
    manage = table.manage_snapshots()
    if lake.chance.random() < 0.5:
        manage.create_tag(snapshot.snapshot_id, what).commit()
    else:
        manage.create_branch(snapshot.snapshot_id, what).commit()
    lake.note(ref, name)
    return f"tag a snapshot of {name} on {ref.name}"


def expire_by_pyiceberg(lake: RandomLake) -> str:
    ref, name, version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    held = {entry.snapshot_id for entry in table.metadata.refs.values()}
    ids = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id not in held]
    if not ids:
        raise LookupError("all are needed")
    table.maintenance.expire_snapshots().by_ids(ids).commit()
    lake.note(ref, name)
    return f"expire {len(ids)} snapshots of {name} on {ref.name}"


def expire_by_headwater(lake: RandomLake) -> str:
    ref, catalog = lake.chance.choice(lake.branches()), lake.catalog()
    homes = find_homes(lake.rows(), catalog.definition.id)
    rules = AskedRules(max_age_ms=0, keep=1)
    wish = ExpiryWish(now=lake.clock.now(), rules=rules, is_home=homes.__contains__, branches=ref.name)
    CatalogExpiry(lake.rows(), catalog.definition, TableStorage(realm=REALM, catalog=LAKE), wish).expire()
    before = lake.model.state(ref)
    changed = [name for name, version in before.items() if lake.version(ref, name) != version]
    if not changed:
        raise LookupError("nothing was old")
    lake.note(ref, *changed)
    return f"expire {changed} on {ref.name} by Headwater"


def change_foreign(lake: RandomLake) -> str:
    """Commit to a table that others have made: a property, or one without its snapshots but the current one."""
    ref, name, version = lake.any_table()
    if version.owner in lake.made or version.owner not in lake.model.tables:
        raise LookupError("it is ours")
    document = version.document
    old = [each["snapshot-id"] for each in document["snapshots"] if each["snapshot-id"] != document["current-snapshot-id"]]
    updates: list[dict[str, Any]] = [{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "1"}}]
    if old and lake.chance.random() < 0.5:
        updates.append({"action": "remove-snapshots", "snapshot-ids": old})
    lake_catalog = IcebergCatalog.open(lake.store, REALM, LAKE, ref.name)
    lake_catalog.tables.commit(TableCommit(lake.key(name), [], updates))
    lake.note(ref, name)
    return f"commit to {name} on {ref.name}: {[update['action'] for update in updates]}"


def rename(lake: RandomLake) -> str:
    ref, name, version = lake.any_table()
    new = f"t{lake.number()}"
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.rename(lake.key(name), lake.key(new))
    lake.note(ref, new, dropped=[name])
    return f"rename {name} to {new} on {ref.name}"


def drop(lake: RandomLake) -> str:
    ref, name, version = lake.any_table()
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.drop(lake.key(name))
    lake.note(ref, dropped=[name])
    return f"drop {name} on {ref.name}"


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
    lake.catalog().merge(source.name, "main")
    lake.note_state(MAIN, {name: theirs.get(name) for name in names})
    return f"merge {sorted(names)} of {source.name}"


def restore(lake: RandomLake) -> str:
    moments = [
        moment for moment in lake.moments if moment[0] in lake.branches() and moment[2] is not lake.model.state(moment[0])
    ]
    if not moments:
        raise LookupError("there is no earlier state")
    ref, commit, state = lake.chance.choice(moments)
    if not any(state is kept for kept in lake.model.lines[ref].states):
        raise LookupError("it is forgotten")
    request = RestoreRequest(reference=f"{LAKE}/{ref.name}", aim=RestoreTarget(commit=ObjectId(commit)))
    restore_state(lake.rows(), ObjectId(4711 + lake.number()), request)
    now = lake.model.state(ref)
    lake.note_state(ref, {name: state.get(name) for name in state.keys() | now.keys() if state.get(name) != now.get(name)})
    return f"restore {ref.name} to an earlier state"


def move_branch(lake: RandomLake) -> str:
    """Put a branch where another one is."""
    ref, target = _choose(lake, _refs(lake, is_tag=False)), lake.chance.choice(lake.branches())
    head = lake.catalog().branch(target.name).head
    if ref == target or head is None:
        raise LookupError("it is the same")
    before = lake.model.lines[ref]
    lake.catalog().assign_branch(ref.name, head)
    lake.model.create(ref, target)
    lost = {version for state in before.states for version in state.values()}
    lake.model.stored |= lost & (lake.model.stored | lake.model.unsure)
    return f"assign {ref.name} to the head of {target.name}"


def create_view(lake: RandomLake) -> str:
    ref, name = lake.chance.choice(lake.branches()), f"w{lake.number()}"
    lake_catalog = IcebergCatalog.open(lake.store, REALM, LAKE, ref.name)
    lake_catalog.views.create(ViewCreation(key=lake.key(name), schema=_VIEW_SCHEMA, view_version=_view_version(1)))
    lake.note(ref, name, is_home=True)
    return f"create view {name} on {ref.name}"


def replace_view(lake: RandomLake) -> str:
    ref = lake.chance.choice(lake.branches())
    views = [(name, each) for name, each in lake.model.state(ref).items() if b'"view-uuid"' in each.text]
    if not views:
        raise LookupError("there is no view")
    name, version = lake.chance.choice(views)
    number = len(version.document["versions"]) + 1
    updates: list[dict[str, Any]] = [
        {"action": "add-view-version", "view-version": _view_version(number)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).views.commit(ViewCommit(lake.key(name), [], updates))
    lake.note(ref, name)
    return f"replace view {name} on {ref.name}"


def _view_version(number: int) -> dict[str, Any]:
    text = [{"type": "sql", "sql": f"SELECT {number}", "dialect": "spark"}]
    made = {
        "version-id": number,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000 + number,
        "summary": {"engine-name": "spark"},
    }
    return made | {"default-namespace": ["sales"], "representations": text}


def set_statistics(lake: RandomLake) -> str:
    ref, name, version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    snapshot = table.current_snapshot()
    if snapshot is None:
        raise LookupError("there is no snapshot")
    path = f"{table.location()}/metadata/{lake.number()}.{lake.chance.choice(['stats', 'puffin'])}"
    Path(real_path(path)).write_bytes(b"PFA1")
    file = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot.snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 4,
            "blob-metadata": [],
        }
    )
    with table.update_statistics() as update:
        update.set_statistics(file)
    lake.note(ref, name)
    return f"statistics of {name} on {ref.name}"


def share_files(lake: RandomLake) -> str:
    """Add one file, which lies in a table's place or outside of all, to two tables, spelled in two ways."""
    first, second = lake.any_table(made=True), lake.any_table(made=True)
    number = lake.number()
    folder = lake.chance.choice([Path(real_path(first[2].document["location"])) / "data", lake.base / "shared"])
    path = folder / lake.chance.choice([f"shared-{number}.parquet", f"shared {number}.parquet", f"Shared%20{number}.parquet"])
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [number], "city": ["Bern"]}), path)
    done = []
    for ref, name, _ in dict.fromkeys([first, second]):
        table = lake.client(ref).load_table(f"sales.{name}")
        if table.spec().fields:
            continue
        spelled = lake.chance.choice([f"file:{path}", f"file://{path}", str(path), f"file://{path.parent}//{path.name}"])
        table.add_files([spelled], check_duplicate_files=False)
        lake.note(ref, name)
        done.append(f"{name} on {ref.name} as {spelled}")
    if not done:
        return f"write {path} for nobody"
    return f"add a file to {' and '.join(done)}"


def take_up(lake: RandomLake) -> str:
    """Take up a shared file again that may be dead by now."""
    files = sorted(path for path in lake.base.rglob("*.parquet") if path.name.lower().startswith("shared"))
    ref, name, version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    if not files or table.spec().fields:
        raise LookupError("there is none")
    path = lake.chance.choice(files)
    table.add_files([f"file://{path}"], check_duplicate_files=False)
    lake.note(ref, name)
    return f"take {path} up in {name} on {ref.name}"


def share_with_others(lake: RandomLake) -> str:
    """A table of another catalog or realm that has our files."""
    ref, name, version = lake.any_table(home=True)
    other = lake.chance.choice([OTHER_MAIN, ZETA_MAIN])
    line = lake.model.lines.get(other)
    if line is None or line.is_deleted:
        raise LookupError("the catalog is deleted")
    clone = ForeignTable(lake.folder / f"lake-of-others/{other.realm}/c{lake.number()}", own_uuid(lake))
    clone.copy_snapshots(version.document, lambda path: Path(real_path(path)).read_bytes())
    return _register(lake, other, clone, f"clone of {name} on {ref.name}")


def clone_table(lake: RandomLake) -> str:
    """A snapshot table, as engines make them: its own metadata, and another's manifests."""
    ref, name, version = lake.any_table()
    clone = ForeignTable(lake.base / f"guests/c{lake.number()}", own_uuid(lake))
    clone.copy_snapshots(version.document, lambda path: Path(real_path(path)).read_bytes())
    return _register(lake, MAIN, clone, f"clone of {name}")


def import_guest(lake: RandomLake) -> str:
    chance = lake.chance
    version = chance.choice([1, 2, 3])
    spell = chance.choice(
        [plain, lambda path: f"file:{path}", lambda path: str(path), lambda path: f"file://{path.parent}//{path.name}"]
    )
    folder = lake.base / f"guests/{chance.choice(['g', 'G %', 'gäst'])}{lake.number()}"
    guest = ForeignTable(folder, own_uuid(lake), version, spell)
    files = [guest.put_file(f"data/{at}-{chance.choice(['a b', 'ä', 'x'])}.parquet") for at in range(3)]
    deletes = guest.put_file("data/deletes.parquet")
    vector = guest.put_file("data/dv.puffin")
    first = guest.manifest("first", [(ADDED, files[0], 0), (ADDED, files[1], 0)])
    second = guest.manifest("second", [(EXISTING, files[0], 0), (DELETED, files[1], 0), (ADDED, files[2], 0)])
    manifests = [second]
    if version > 1:
        manifests.append(guest.manifest("deletes", [(ADDED, vector if version == 3 else deletes, 1)]))
    if chance.random() < 0.5:
        guest.add_snapshot(1, [first], inline=version == 1)
    if chance.random() < 0.5:
        guest.write()
    guest.add_snapshot(2, manifests, inline=version == 1 and chance.random() < 0.5)
    if chance.random() < 0.5:
        guest.add_statistics("2.stats", 2)
    guest.put_file("metadata/version-hint.text", b"1")
    guest.put_file("metadata/.version-hint.text.crc")
    guest.put_file("metadata/.v1.metadata.json.crc")
    others = chance.random() < 0.4 and lake.model.state(MAIN)
    if others:  # it holds a file of ours
        _, _, ours = lake.any_table()
        if mine := lake.data_files(ours):
            guest.add_snapshot(3, [guest.manifest("third", [(EXISTING, chance.choice(mine), 0)])])
    return _register(lake, MAIN, guest, f"a guest of version {version}")


def _register(lake: RandomLake, ref: RefKey, table: ForeignTable, what: str, **fields: Any) -> str:
    name = f"g{lake.number()}"
    path = table.write(**fields)
    lake_catalog = IcebergCatalog.open(lake.store, ref.realm, ref.catalog, ref.name)
    lake_catalog.tables.register(lake.key(name), table.spell(path))
    lake.note(ref, name, is_home=False)
    return f"register {what} as {name} in {ref.realm}/{ref.catalog}"


def adopt(lake: RandomLake) -> str:
    ref, name, version = lake.any_table(home=False)
    if version.owner not in lake.model.tables:
        raise LookupError("it was only put")
    lake_catalog = IcebergCatalog.open(lake.store, REALM, LAKE, ref.name)
    adoption = adopt_guests(lake_catalog, list(list_table_homes(lake_catalog, keys=[lake.key(name)])))
    if not adoption.adopted:
        return f"adoption of {name} refused: {adoption.refused}"
    lake.model.note_table(version.owner, REALM, LAKE, is_home=True)
    return f"adopt {name} on {ref.name}"


def put_undocumented(lake: RandomLake) -> str:
    """Put content by its metadata location alone, as old clients of Nessie do."""
    table = ForeignTable(lake.folder / f"elsewhere/u{lake.number()}", own_uuid(lake))
    files = [table.put_file("data/0.parquet")]
    if lake.model.state(MAIN):
        files += lake.data_files(lake.any_table()[2])[:1]
    table.add_snapshot(1, [table.manifest("first", [(ADDED, path, 0) for path in files])])
    ref, name, path = lake.chance.choice(lake.branches()), f"u{lake.number()}", table.write()
    lake.catalog().commit(ref.name, [Put(lake.key(name), IcebergTable(metadata_location=f"file://{path}"))])
    lake.note(ref, name)
    return f"put {name} on {ref.name} without a document, with {files[1:]}"


def die_writing(lake: RandomLake) -> str:
    """A writer that dies before its commit."""
    ref, name, version = lake.any_table(home=True)
    chance, number = lake.chance, lake.number()
    table = Path(real_path(version.document["location"]))
    names = {
        f"data/stray-{number}.parquet": b"x",
        f"data/city=a+b/{number} stray.parquet": b"x",
        f"metadata/{number}-m0.avro": b"x",
        f"metadata/snap-{number}.avro": b"x",
        f"metadata/{own_name(lake.catalog().definition.id, number)}": version.text,
        f"data/_temporary/{number}/part-0.parquet": b"x",
        f"data/.spark-staging-{number}/part-0.parquet": b"x",
        f"checkpoints/{number}.ckpt": b"x",
        f"data/.stray-{number}.parquet.crc": b"x",
        f"_SUCCESS{number}": b"",
    }
    for left in chance.sample(sorted(names), 3):
        path = table / left
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(names[left])
        if chance.random() < 0.3:
            time = chance.choice([0.0, lake.now - 400 * DAY, lake.now + 3 * DAY])
            os.utime(path, (time, time))
            lake.is_settled(path)
    return f"a writer of {name} dies"


def make_decoy(lake: RandomLake) -> str:
    """A file beside a live one that a careless reader takes for it."""
    ref, name, version = lake.any_table(home=True)
    files = [*lake.data_files(version), Path(real_path(version.metadata_location))]
    path = lake.chance.choice(files)
    other = careless_sibling(path, lake.chance)
    if other is None or other.exists() or other.name.endswith(".metadata.json"):
        raise LookupError("there is none")
    other.write_bytes(b"a decoy")
    return f"a decoy {other.name} of {path}"


def put_checksums(lake: RandomLake) -> str:
    """What Hadoop's file systems and catalogs leave beside metadata and data."""
    ref, name, version = lake.any_table(home=True)
    metadata = Path(real_path(version.metadata_location))
    metadata.with_name(f".{metadata.name}.crc").write_bytes(b"crc")
    metadata.with_name("version-hint.text").write_text("1", encoding="utf-8")
    for path in lake.data_files(version)[:1]:
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return f"checksums and a hint beside {metadata}"


def age_files(lake: RandomLake) -> str:
    """Give some files times of their own: old ones, unknown ones."""
    ref, name, version = lake.any_table(home=True)
    files = lake.data_files(version)
    if not files:
        raise LookupError("there is none")
    path = lake.chance.choice(files)
    time = lake.chance.choice([0.0, lake.now - 1000 * DAY, lake.now - DAY])
    os.utime(path, (time, time))
    return f"{path} is of {time}"


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
    lake.collect()  # the hold is over: it is being purged
    line.is_deleted = True
    return "delete the other catalog, and let its hold end"


@dataclass(frozen=True, slots=True)
class LakeStep:
    do: Callable[[RandomLake], str]
    weight: int = 2


STEPS = (
    LakeStep(create_table, 5),
    LakeStep(append, 10),
    LakeStep(overwrite, 6),
    LakeStep(delete_rows, 3),
    LakeStep(tag_snapshot),
    LakeStep(expire_by_pyiceberg, 3),
    LakeStep(expire_by_headwater, 3),
    LakeStep(change_foreign, 3),
    LakeStep(rename),
    LakeStep(drop),
    LakeStep(create_branch, 3),
    LakeStep(create_tag),
    LakeStep(delete_ref),
    LakeStep(undelete_branch),
    LakeStep(merge, 3),
    LakeStep(restore, 3),
    LakeStep(move_branch, 1),
    LakeStep(create_view, 1),
    LakeStep(replace_view),
    LakeStep(set_statistics),
    LakeStep(share_files, 4),
    LakeStep(take_up, 3),
    LakeStep(share_with_others),
    LakeStep(clone_table),
    LakeStep(import_guest, 3),
    LakeStep(adopt),
    LakeStep(put_undocumented),
    LakeStep(die_writing, 3),
    LakeStep(make_decoy, 3),
    LakeStep(put_checksums),
    LakeStep(age_files),
    LakeStep(collect, 4),
    LakeStep(hold_archive, 1),
    LakeStep(delete_other_catalog, 1),
)
