"""What makes places yield nothing: steps that come late in a random lake, for after them there is less to be seen."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.backup import load_realm
from headwater.backup.realm_export import ExportOrder, export_realm
from headwater.catalogs import DeltaLakeTable, IcebergTable, Put
from headwater.iceberg_catalog import IcebergCatalog, TableCommit
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId
from lake_oracle.foreign_tables import ADDED, ForeignTable
from lake_oracle.lake_model import RefKey, RefLine
from lake_oracle.lake_steps import LakeStep
from lake_oracle.lake_verdict import ELSEWHERE, SHARED
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import LAKE, MAIN, OTHER_REALM, REALM, ZETA_MAIN, RandomLake, own_uuid

__all__ = ["HARMS"]


def leave_foreign_metadata(lake: RandomLake) -> str:
    """Somebody else writes a version of a table of ours, or another table into its place."""
    _ref, _name, version = lake.any_table(home=True)
    place = Path(real_path(version.document["location"]))
    number = lake.number()
    left = lake.chance.choice([f"metadata/v{number}.metadata.json", f"inner/metadata/0000{number}-x.metadata.json"])
    (place / left).parent.mkdir(parents=True, exist_ok=True)
    theirs = lake.chance.choice(
        [{"last-updated-ms": lake.clock.now() // 1000 + 1}, {"table-uuid": str(own_uuid(lake))}, {"format-version": 9}]
    )
    (place / left).write_text(json.dumps({**version.document, "last-updated-ms": lake.clock.now() // 1000, **theirs}))
    lake.tear(str(place), ELSEWHERE)
    return f"foreign metadata {left} in {place}"


def leave_other_format(lake: RandomLake) -> str:
    _ref, _name, version = lake.any_table(home=True)
    place = Path(real_path(version.document["location"]))
    left = lake.chance.choice(["_delta_log/00000000000000000000.json", ".hoodie/hoodie.properties", "inner/_delta_log/0.json"])
    (place / left).parent.mkdir(parents=True, exist_ok=True)
    (place / left).write_bytes(b"{}")
    lake.tear(str(place), ELSEWHERE)
    return f"{left} in {place}"


def put_delta_table(lake: RandomLake) -> str:
    """Somebody puts a Delta Lake table into the catalog that lies in a place of ours."""
    _ref, _name, version = lake.any_table(home=True)
    place, name = real_path(version.document["location"]), f"d{lake.number()}"
    content = DeltaLakeTable(metadata_location_history=(f"file://{place}/_delta_log/0.json",))
    lake.catalog().commit("main", [Put(lake.key(name), content)])
    lake.note(MAIN)
    lake.tear(place, ELSEWHERE)
    return f"put the Delta Lake table {name} at {place}"


def stop_other_realm(lake: RandomLake) -> str:
    """The other realm is no longer active; what its tables hold is live all the same."""
    realms = RealmRegistry(lake.store)
    realms.move_realm(realms.read_realm(OTHER_REALM), RealmState.INACTIVE)
    return "the other realm is INACTIVE"


def lose_live_file(lake: RandomLake) -> str:
    _ref, _name, version = lake.any_table(home=True)
    files = lake.data_files(version)
    if not files:
        raise LookupError("there is none")
    path = lake.chance.choice(files)
    path.unlink()
    return f"lose {path}"


def lose_manifest(lake: RandomLake) -> str:
    """Damage a manifest, or delete it, and commit something, so that nobody need notice it by the disk alone."""
    ref, _name, version = lake.any_table()
    reached = lake.model.reader.read(version)
    manifests = sorted(path for path in reached.must if path.endswith(".avro") and Path(path).exists())
    if not manifests:
        raise LookupError("there is none")
    path = Path(lake.chance.choice(manifests))
    if lake.chance.random() < 0.5:
        path.write_bytes(path.read_bytes()[:-20])
    else:
        path.unlink()
    lake.client(ref).create_namespace(f"later{lake.number()}")
    lake.note(ref)
    lake.model.reader.break_file(str(path))
    return f"break {path}"


def disable_gc(lake: RandomLake) -> str:
    ref, name, version = lake.any_table()
    if version.owner not in lake.model.tables:
        raise LookupError("it was only put")
    updates = [{"action": "set-properties", "updates": {"gc.enabled": "false"}}]
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.commit(TableCommit(lake.key(name), [], updates))
    lake.note(ref, name)
    return f"gc.enabled=false for {name} on {ref.name}"


def register_encrypted(lake: RandomLake) -> str:
    table = _odd_table(lake)
    table.snapshots[-1]["key-id"] = "k1"
    return _put(lake, table, "an encrypted table")


def register_too_new(lake: RandomLake) -> str:
    return _put(lake, _odd_table(lake, version=4), "a table of version 4")


def register_broken(lake: RandomLake) -> str:
    """A table that nobody could ever read wholly."""
    table = _odd_table(lake)
    manifest = next((table.folder / "metadata").glob("*-m0.avro"))
    manifest.write_bytes(manifest.read_bytes() + b"more")
    return _put(lake, table, "a table whose manifest is not as its list says")


def share_place(lake: RandomLake) -> str:
    """The other realm registers a table of ours."""
    _ref, name, version = lake.any_table(home=True)
    other, new = ZETA_MAIN, f"s{lake.number()}"
    IcebergCatalog.open(lake.store, other.realm, other.catalog, other.name).tables.register(
        lake.key(new), version.metadata_location
    )
    lake.note(other, new)
    for place in lake.model.reader.read(version).places:
        lake.tear(place, SHARED)
    return f"zeta registers {name}"


def load_twin(lake: RandomLake) -> str:
    """An archive of the realm is loaded beside it: from then on the files are two realms'."""
    lake.clock.advance(3600)
    path, task = lake.folder / f"twin-{lake.number()}.hwx", ObjectId(9000 + lake.number())
    export_realm(lake.store, ExportOrder(realm=REALM, file=path, time=None, task=task))
    twin = f"twin{lake.number()}"
    load_realm(lake.store, twin, path)
    for key, line in list(lake.model.lines.items()):
        if key.realm == REALM and not line.is_deleted:
            lake.model.lines[key._replace(realm=twin)] = RefLine([line.states[-1]], line.is_tag)
    for version in lake.model.heads(REALM, LAKE):
        if version.owner in lake.model.tables:
            for place in lake.model.tables[version.owner].places:
                lake.tear(place, SHARED)
    lake.perhaps.add(SHARED)  # the archive has claims on places of dropped tables, too
    files = [str(path) for path in lake.folder.rglob("*")]
    for watcher in lake.watchers:
        watcher.took(files, [str(lake.folder)])  # no report can know what was loaded: it takes up all marks of all realms
    return f"load the realm as {twin}"


def _odd_table(lake: RandomLake, version: int = 3) -> ForeignTable:
    table = ForeignTable(lake.folder / f"elsewhere/o{lake.number()}", own_uuid(lake), version)
    table.add_snapshot(1, [table.manifest("first", [(ADDED, table.put_file("data/0.parquet"), 0)])])
    return table


def _put(lake: RandomLake, table: ForeignTable, what: str) -> str:
    ref: RefKey = lake.chance.choice([MAIN, ZETA_MAIN])
    path, name = table.write(), f"o{lake.number()}"
    lake.catalog(ref).commit(ref.name, [Put(lake.key(name), IcebergTable(metadata_location=f"file://{path}"))])
    lake.note(ref, name)
    return f"put {what} as {name} in {ref.realm}"


HARMS = (
    LakeStep(leave_foreign_metadata),
    LakeStep(leave_other_format),
    LakeStep(put_delta_table, 1),
    LakeStep(lose_live_file),
    LakeStep(lose_manifest),
    LakeStep(disable_gc),
    LakeStep(register_encrypted, 1),
    LakeStep(register_too_new, 1),
    LakeStep(register_broken, 1),
    LakeStep(share_place),
    LakeStep(load_twin, 1),
)
