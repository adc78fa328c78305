"""Steps of random lakes in which files are shared, or others have written them. LookupError says that there is nothing to do it to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.catalogs import IcebergTable, Put
from headwater.catalogs.known_metadata import own_name
from headwater.iceberg_catalog import IcebergCatalog, TableCommit
from headwater.iceberg_catalog.table_adoption import adopt_guests, list_table_homes
from lake_oracle.foreign_tables import ADDED, DELETED, EXISTING, ForeignTable, plain
from lake_oracle.lake_model import RefKey
from lake_oracle.live_files import real_path
from lake_oracle.random_lake import (
    DAY,
    LAKE,
    MAIN,
    OTHER_MAIN,
    REALM,
    ZETA_MAIN,
    RandomLake,
    careless_sibling,
    own_uuid,
)


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
    live = lake.model.live()
    files = [path for path in files if path.read_bytes()[:4] == b"PAR1"]
    files = [path for path in files if str(path) not in live] or files
    ref, name, _version = lake.any_table(made=True)
    table = lake.client(ref).load_table(f"sales.{name}")
    if not files or table.spec().fields:
        raise LookupError("there is none")
    path = lake.chance.choice(files)
    table.add_files([f"file://{path}"], check_duplicate_files=False)
    lake.note(ref, name)
    return f"take {path} up in {name} on {ref.name}"


def take_up_for_a_while(lake: RandomLake) -> str:
    """Take a file up that may be marked, on a branch that does not last: between two reports it was live, and it is dead again."""
    live, named = lake.model.live(), lake.model.named
    source, name, version = lake.any_table(made=True)
    places = [*lake.model.reader.read(version).places, *([str(lake.base)] if lake.chance.random() < 0.3 else [])]
    files = sorted(path for place in places for path in Path(place).rglob("*.parquet") if str(path) in named - live)
    if not files:
        raise LookupError("there is none")
    path, ref = lake.chance.choice(files), MAIN._replace(name=f"b{lake.number()}")
    lake.catalog().create_branch(ref.name, source.name)
    lake.model.create(ref, source)
    table = ForeignTable(Path(real_path(version.document["location"])), own_uuid(lake))
    taken = table.manifest(f"taken{lake.number()}", [(ADDED, path, 0)])
    _append_manifest(lake, ref, name, table, taken)
    lake.catalog().delete_branch(ref.name)
    lake.model.lines[ref].is_deleted = True
    lake.collect()
    return f"take {path} up in {name} on {ref.name}, delete that, collect garbage"


def _append_manifest(lake: RandomLake, ref: RefKey, name: str, table: ForeignTable, manifest: dict[str, Any]) -> None:
    """Commit a snapshot that has one manifest more, as an engine does that knows its files already."""
    document = lake.version(ref, name).document
    number = document.get("last-sequence-number", 0) + 1
    table.add_snapshot(10**9 + lake.number(), [manifest])
    snapshot = table.snapshots[-1] | {"sequence-number": number, "timestamp-ms": lake.clock.now() // 1000 + 10**7}
    if document["format-version"] == 1:
        del snapshot["sequence-number"]
    set_main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, set_main]
    lake_catalog = IcebergCatalog.open(lake.store, ref.realm, ref.catalog, ref.name)
    lake_catalog.tables.commit(TableCommit(lake.key(name), [], updates))
    lake.note(ref, name)


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
    _ref, name, version = lake.any_table()
    clone = ForeignTable(lake.base / f"guests/c{lake.number()}", own_uuid(lake))
    clone.copy_snapshots(version.document, lambda path: Path(real_path(path)).read_bytes())
    return _register(lake, MAIN, clone, f"clone of {name}")


def import_guest(lake: RandomLake) -> str:
    chance = lake.chance
    version = chance.choice([1, 2, 3])
    spell = chance.choice([plain, lambda path: f"file:{path}", str, lambda path: f"file://{path.parent}//{path.name}"])
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
        guest.add_statistics("partition-stats-2.parquet", 2, of_partitions=True)
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
    _ref, name, version = lake.any_table(home=True)
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
    _ref, _name, version = lake.any_table(home=True)
    path = lake.chance.choice([*lake.data_files(version), Path(real_path(version.metadata_location))])
    place = next((Path(each) for each in lake.model.reader.read(version).places if path.is_relative_to(each)), None)
    other = None if place is None else careless_sibling(path, place, lake.chance)
    if other is None or other.exists() or other.name.endswith(".metadata.json"):
        raise LookupError("there is none")
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(b"a decoy")
    return f"a decoy {other} of {path}"


def put_checksums(lake: RandomLake) -> str:
    """What Hadoop's file systems and catalogs leave beside metadata and data."""
    _ref, _name, version = lake.any_table(home=True)
    metadata = Path(real_path(version.metadata_location))
    metadata.with_name(f".{metadata.name}.crc").write_bytes(b"crc")
    metadata.with_name("version-hint.text").write_text("1", encoding="utf-8")
    for path in lake.data_files(version)[:1]:
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return f"checksums and a hint beside {metadata}"
