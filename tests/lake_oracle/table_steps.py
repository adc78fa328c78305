"""Steps of random lakes that change tables and views of our own. LookupError says that there is nothing to do it to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from headwater.catalogs import find_homes
from headwater.expiry import AskedRules, CatalogExpiry, ExpiryWish
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog import IcebergCatalog, TableCommit, ViewCommit, ViewCreation
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import (
    DAY,
    LAKE,
    REALM,
    RandomLake,
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


_MAPPING = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["city"]}]'


def create_table(lake: RandomLake) -> str:
    chance, name = lake.chance, f"t{lake.number()}"
    folder = chance.choice(
        ["", "", f"{name} with space", f"{name}%20percent", f"Ünï {name}", f"UPPER/{name}", f"dot.{name}/_x"]
    )
    spelled = chance.choice(["file://", "file://", "file:"])
    location = f"{spelled}{lake.base}/{folder}" if folder else None
    if lake.left and chance.random() < 0.3:
        location = f"file://{chance.choice(lake.left)}"
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
    try:
        lake.client(ref).create_table(f"sales.{name}", SCHEMA, location=location, partition_spec=spec, properties=given)
    except ValueError as fault:  # another table has it still
        return f"create {name} at {location}: {fault}"
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
    ref, name, _version = lake.any_table(made=True)
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
    ref, name, _version = lake.any_table(made=True)
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


def let_die(lake: RandomLake) -> str:
    """Let what a table has be overwritten, expired and collected, some of it with a time of its own; others may hold it."""
    ref, name, version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    for path in lake.data_files(version)[:3]:
        if lake.chance.random() < 0.5:
            time = lake.chance.choice([0.0, lake.now - 1000 * DAY])
            os.utime(path, (time, time))
    table.overwrite(lake.some_rows())
    lake.note(ref, name)
    held = {entry.snapshot_id for entry in table.metadata.refs.values()}
    ids = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.snapshot_id not in held]
    if ids:
        table.maintenance.expire_snapshots().by_ids(ids).commit()
        lake.note(ref, name)
    lake.collect()
    return f"overwrite {name} on {ref.name}, expire {len(ids)} snapshots, collect garbage"


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


def move_table(lake: RandomLake) -> str:
    """Give a table another location; what it has stays where it is."""
    ref, name, version = lake.any_table(made=True)
    lake.left.append(real_path(version.document["location"]))
    location = f"file://{lake.base}/moved/{name}-{lake.number()}"
    updates = [{"action": "set-location", "location": location}]
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.commit(TableCommit(lake.key(name), [], updates))
    lake.note(ref, name)
    return f"move {name} on {ref.name} to {location}"


def rename(lake: RandomLake) -> str:
    ref, name, _version = lake.any_table()
    new = f"t{lake.number()}"
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.rename(lake.key(name), lake.key(new))
    lake.note(ref, new, dropped=[name])
    return f"rename {name} to {new} on {ref.name}"


def drop(lake: RandomLake) -> str:
    ref, name, version = lake.any_table()
    lake.left.append(real_path(version.document["location"]))
    IcebergCatalog.open(lake.store, REALM, LAKE, ref.name).tables.drop(lake.key(name))
    lake.note(ref, dropped=[name])
    return f"drop {name} on {ref.name}"


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
    ref, name, _version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    snapshot = table.current_snapshot()
    if snapshot is None:
        raise LookupError("there is no snapshot")
    path = f"{table.location()}/metadata/{lake.number()}.{lake.chance.choice(['stats', 'puffin'])}"
    Path(real_path(path)).parent.mkdir(parents=True, exist_ok=True)
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


def age_files(lake: RandomLake) -> str:
    """Give some files times of their own: old ones, unknown ones."""
    _ref, _name, version = lake.any_table(home=True)
    files = lake.data_files(version)
    if not files:
        raise LookupError("there is none")
    path = lake.chance.choice(files)
    time = lake.chance.choice([0.0, lake.now - 1000 * DAY, lake.now - DAY])
    os.utime(path, (time, time))
    return f"{path} is of {time}"
