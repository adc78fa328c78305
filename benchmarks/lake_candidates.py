"""Files that nobody refers to in one large table, beside Iceberg's procedure over the same files and the same listing."""

from __future__ import annotations

import hashlib
import io
import json
import random
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.iceberg_engine import engine_is_there, iceberg_session
from benchmarks.report import Row, at_least_of_floor, say

from headwater.catalogs import Catalogs, ContentKey, Namespace, Put
from headwater.catalogs.table_claims import TableClaim, TableClaims
from headwater.clock import Micros
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg_catalog.lake_documents import table_content
from headwater.lake_files import report_files
from headwater.lake_files.file_columns import ListedFiles, listed_files
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store import Store, open_store

__all__ = [
    "STRAYS",
    "CandidateScale",
    "Place",
    "first_report",
    "measure_candidates",
    "repeat_report",
    "write_document",
    "write_listing",
    "write_manifests",
]

STRAYS = 1000
COLUMNS = 8
BRANCHES = 10
TABLE_ID = UUID(int=7, version=4)
_LISTED_AT_ONCE = 1 << 20
"""Letters."""
_OLD = Micros(1_600_000_000_000_000)
_LIST_FIELDS = (
    ("manifest_path", "string", 500),
    ("manifest_length", "long", 501),
    ("partition_spec_id", "int", 502),
    ("content", "int", 517),
    ("sequence_number", "long", 515),
    ("min_sequence_number", "long", 516),
    ("added_snapshot_id", "long", 503),
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
)
_FILE_FIELDS = (("content", "int", 134), ("file_path", "string", 100), ("file_format", "string", 101))
_NUMBER_FIELDS = (("record_count", "long", 103), ("file_size_in_bytes", "long", 104))
_MAPS = (
    ("column_sizes", 108, 117, "long"),
    ("value_counts", 109, 119, "long"),
    ("null_value_counts", 110, 121, "long"),
    ("lower_bounds", 125, 126, "bytes"),
    ("upper_bounds", 128, 129, "bytes"),
)


@dataclass(frozen=True)
class CandidateScale:
    """
    shared        files of the tables of ten branches, each
    """

    files: int
    manifests: int
    snapshots: int
    shared: int


@dataclass(frozen=True)
class Place:
    """A table's place.

    folder        where its metadata is written
    url           by which name its files are known
    """

    folder: Path
    url: str

    @classmethod
    def of_folder(cls, folder: Path) -> Place:
        return cls(folder, folder.as_uri())


@dataclass(frozen=True)
class _Manifest:
    path: str
    length: int
    files: int


def measure_candidates(folder: Path, scale: CandidateScale) -> Iterator[Row]:
    place = Place.of_folder(folder / "big" / "t")
    per = scale.files // scale.manifests
    say(f"writing {scale.files:,} entries in {scale.manifests:,} manifests")
    manifests = write_manifests(place, range(scale.manifests), per)
    whole = write_document(place, "v1", manifests, scale.snapshots)
    most = scale.snapshots - scale.snapshots // 10
    part = _earlier(whole, most)
    listing = write_listing(folder / "listing", place, manifests, per)
    shared, branches = _write_branches(folder / "branches", scale)
    theirs = theirs_shared = None
    if engine_is_there():
        say("Iceberg's procedure")
        theirs = _measure_procedure(folder / "spark", folder, "big.t", listing)
        theirs_shared = BRANCHES * _measure_procedure(
            folder / "spark-shared", shared.folder.parents[1], "b.t0", folder / "listing-shared"
        )
    what = f"candidates among {scale.files:,} files, {scale.manifests:,} manifests, {scale.snapshots} snapshots"
    listed = partial(_listed, listing, place)
    with open_store(f"sqlite:///{folder}/cold.db") as store:
        seconds = first_report(store, (folder / "big").as_uri(), place, whole, listed)
        yield _row(f"{what}: first report", scale.files, seconds, theirs, 0.7)
        again = repeat_report(store, listed)
        yield Row("the same again: nothing new (wanted: a tenth of the first)", "process", again / seconds, "of the first")
    _forget(folder / "big")
    with open_store(f"sqlite:///{folder}/tenth.db") as store:
        first_report(store, (folder / "big").as_uri(), place, part, listed, is_whole=False)
        _commit(store, whole, "main")
        yield _row("a tenth of the manifests new", scale.files, repeat_report(store, listed), theirs, 3.0)
    with open_store(f"sqlite:///{folder}/shared.db") as store:
        listed = partial(_listed, folder / "listing-shared", shared)
        seconds = first_report(store, shared.folder.parent.as_uri(), shared, branches[0], listed, others=branches[1:])
        text = f"{BRANCHES} branches of {scale.shared:,} files that share nine tenths, beside {BRANCHES} runs of the procedure"
        yield _row(text, scale.shared * BRANCHES, seconds, theirs_shared, 5.0)
    yield Row(
        "most memory of the process, listings and all",
        "process",
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "MB",
    )


def _row(text: str, files: int, seconds: float, theirs: float | None, wanted: float) -> Row:
    """Files a second, beside theirs."""
    floor = None if theirs is None else files / theirs
    return Row(
        text, "process", files / seconds, "files/s", floor=floor, target=None if floor is None else at_least_of_floor(wanted)
    )


def _write_branches(folder: Path, scale: CandidateScale) -> tuple[Place, list[bytes]]:
    """The versions of one table on ten branches; the first one also for Iceberg, and a listing of all their files."""
    place, per = Place.of_folder(folder / "b" / "t0"), scale.files // scale.manifests
    count = scale.shared // per
    common = write_manifests(place, range(count * 9 // 10), per)
    documents, everything = [], list(common)
    for branch in range(BRANCHES):
        start = (branch + 1) * scale.manifests
        own = write_manifests(place, range(start, start + count // 10), per)
        everything += own
        documents.append(write_document(place, "v1" if branch == 0 else f"b{branch}", [*common, *own], 1))
    write_listing(folder.parent / "listing-shared", place, everything, per)
    return place, documents


def _entry_schema() -> dict[str, Any]:
    maps = []
    for name, field_id, key_id, kind in _MAPS:
        pair = [{"name": "key", "type": "int", "field-id": key_id}, {"name": "value", "type": kind, "field-id": key_id + 1}]
        items = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": pair}
        array = {"type": "array", "items": items, "logicalType": "map"}
        maps.append({"name": name, "type": ["null", array], "default": None, "field-id": field_id})
    partition = {"type": "record", "name": "r102", "fields": [{"name": "day", "type": ["null", "int"], "field-id": 1000}]}
    plain = [{"name": name, "type": kind, "field-id": number} for name, kind, number in _FILE_FIELDS]
    numbers = [{"name": name, "type": kind, "field-id": number} for name, kind, number in _NUMBER_FIELDS]
    fields = [*plain, {"name": "partition", "type": partition, "field-id": 102}, *numbers, *maps]
    optional = [
        {"name": name, "type": ["null", "long"], "default": None, "field-id": number}
        for name, number in (("snapshot_id", 1), ("sequence_number", 3), ("file_sequence_number", 4))
    ]
    file = {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": fields}, "field-id": 2}
    status = {"name": "status", "type": "int", "field-id": 0}
    return {"type": "record", "name": "manifest_entry", "fields": [status, *optional, file]}


def _write_manifest(place: Place, per: int, number: int) -> _Manifest:
    import fastavro

    chance = random.Random(number)
    entries = [_entry(place, chance, number, at) for at in range(per)]
    field = {"name": "day", "transform": "identity", "source-id": 1, "field-id": 1000}
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "day", "required": False, "type": "int"}]}
    about = {
        "format-version": "2",
        "content": "data",
        "partition-spec-id": "0",
        "partition-spec": json.dumps([field]),
        "schema": json.dumps(schema),
    }
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, fastavro.parse_schema(_entry_schema()), entries, codec="deflate", sync_interval=64_000, metadata=about
    )
    file = place.folder / "metadata" / f"m{number:06}.avro"
    file.write_bytes(buffer.getvalue())
    return _Manifest(f"{place.url}/metadata/{file.name}", len(buffer.getvalue()), per)


def _entry(place: Place, chance: random.Random, number: int, at: int) -> dict[str, Any]:
    counts = [{"key": column, "value": chance.getrandbits(20)} for column in range(1, COLUMNS + 1)]
    bounds = [{"key": column, "value": chance.randbytes(8)} for column in range(1, COLUMNS + 1)]
    file = {
        "content": 0,
        "file_path": _path(place, number, at),
        "file_format": "PARQUET",
        "partition": {"day": number % 28},
        "record_count": 1000,
        "file_size_in_bytes": 12345,
        **{name: bounds if kind == "bytes" else counts for name, _, _, kind in _MAPS},
    }
    return {"status": 1, "snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1, "data_file": file}


def _path(place: Place, number: int, at: int) -> str:
    name = random.Random(number * 1_000_003 + at).getrandbits(128)
    return f"{place.url}/data/day={number % 28:02}/{at:05}-{number}-{name:032x}-0001.parquet"


def write_manifests(place: Place, numbers: Sequence[int], per: int) -> list[_Manifest]:
    (place.folder / "metadata").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(_write_manifest, place, per), numbers, chunksize=20))


def write_document(place: Place, name: str, manifests: Sequence[_Manifest], snapshots: int) -> bytes:
    """Write the lists and the metadata file of a version; returns its text."""
    import fastavro

    fields = [{"name": field, "type": kind, "field-id": number} for field, kind, number in _LIST_FIELDS]
    schema = fastavro.parse_schema({"type": "record", "name": "manifest_file", "fields": fields})
    known = []
    for at in range(snapshots):
        file = place.folder / "metadata" / f"snap-{name}-{at}.avro"
        with file.open("wb") as out:
            chosen = manifests[: len(manifests) * (at + 1) // snapshots]
            fastavro.writer(out, schema, map(_listed_manifest, chosen), codec="deflate")
        listed = f"{place.url}/metadata/{file.name}"
        known.append({"snapshot-id": at + 1, "sequence-number": at + 1, "timestamp-ms": at + 1, "manifest-list": listed})
    for snapshot in known:
        snapshot |= {"summary": {"operation": "append"}, "schema-id": 0}
    field = {"name": "day", "transform": "identity", "source-id": 1, "field-id": 1000}
    schema_0 = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "day", "required": False, "type": "int"}]}
    document = {
        "format-version": 2,
        "table-uuid": str(TABLE_ID),
        "location": place.url,
        "last-sequence-number": snapshots,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1,
        "schemas": [schema_0],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [field]}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": snapshots,
        "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}},
        "snapshots": known,
    }
    text = json.dumps(document).encode()
    (place.folder / "metadata" / f"{name}.metadata.json").write_bytes(text)
    (place.folder / "metadata" / "version-hint.text").write_text("1", encoding="utf-8")
    return text


def _earlier(text: bytes, snapshots: int) -> bytes:
    """The same document, when the table had its first snapshots alone."""
    document = json.loads(text)
    document["snapshots"] = document["snapshots"][:snapshots]
    document |= {"current-snapshot-id": snapshots, "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}}}
    return json.dumps(document).encode()


def _listed_manifest(manifest: _Manifest) -> dict[str, Any]:
    numbers = dict.fromkeys((name for name, kind, _ in _LIST_FIELDS if kind != "string"), 0)
    said = {"manifest_path": manifest.path, "manifest_length": manifest.length, "added_files_count": manifest.files}
    return {**numbers, "added_snapshot_id": 1, "sequence_number": 1, "min_sequence_number": 1, **said}


def write_listing(folder: Path, place: Place, manifests: Sequence[_Manifest], per: int) -> Path:
    """A listing for both: the data files of all manifests, and some that nobody refers to."""
    folder.mkdir()
    with (folder / "paths.txt").open("w", encoding="utf-8") as out:
        for manifest in manifests:
            number = int(manifest.path.rpartition("/m")[2].removesuffix(".avro"))
            out.writelines(f"{_path(place, number, at)}\n" for at in range(per))
        out.writelines(f"{place.url}/data/stray-{at}.parquet\n" for at in range(STRAYS))
    return folder


def _listed(listing: Path, place: Place) -> Iterator[ListedFiles]:
    with (listing / "paths.txt").open(encoding="utf-8") as lines:
        while text := lines.read(_LISTED_AT_ONCE):
            paths = (text + lines.readline()).removesuffix("\n").split("\n")
            yield listed_files(paths, [12345] * len(paths), [_OLD] * len(paths))
    beside = [f"{place.url}/metadata/{file.name}" for file in (place.folder / "metadata").iterdir()]
    yield listed_files(beside, [1000] * len(beside), [_OLD] * len(beside))


def _measure_procedure(spark: Path, warehouse: Path, table: str, listing: Path) -> float:
    """Seconds of a second run: the first one also warms Java up."""
    with iceberg_session(spark) as session:
        conf = session.conf()
        conf.set("spark.sql.shuffle.partitions", "4")
        conf.set("spark.sql.catalog.theirs", "org.apache.iceberg.spark.SparkCatalog")
        conf.set("spark.sql.catalog.theirs.type", "hadoop")
        conf.set("spark.sql.catalog.theirs.warehouse", str(warehouse))
        columns = "value as file_path, timestamp'2020-01-01' as last_modified"
        session.sql(f"create or replace temporary view listing as select {columns} from text.`{listing}`")
        call = f"CALL theirs.system.remove_orphan_files(table => '{table}', file_list_view => 'listing', dry_run => true)"
        taken = 0.0
        for _ in range(2):
            started = time.perf_counter()
            found = len(session.sql(call).collectAsList())
            taken = time.perf_counter() - started
        assert found >= STRAYS, found
        return taken


def first_report(
    store: Store, base: str, place: Place, text: bytes, listed: Any, *, others: Sequence[bytes] = (), is_whole: bool = True
) -> float:
    """Make a catalog with the table, on other branches in other versions, and take the time of its first report."""
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    rows = realms.open_realm("acme")
    catalogs = Catalogs(rows)
    catalogs.create_catalog("lake", base_location=base)
    catalog = catalogs.open_catalog("lake")
    catalog.commit("main", [Put(ContentKey.of("s"), Namespace())])
    TableClaims(rows).take_claims([TableClaim(catalog.definition.id, TABLE_ID, place.url, TABLE_ID, is_home=True)])
    _commit(store, text, "main")
    for number, other in enumerate(others):
        catalog.create_branch(f"b{number}")
        _commit(store, other, f"b{number}")
    return repeat_report(store, listed, is_whole=is_whole)


def _commit(store: Store, text: bytes, branch: str) -> None:
    catalog, key = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake"), ContentKey.of("s", "t")
    document = json.loads(text)
    held = catalog.get_content(branch, key)
    version = hashlib.blake2b(text, digest_size=8).hexdigest()  # another one for each: a commit that changes nothing is none
    location = f"{document['location']}/metadata/{version}.metadata.json"
    content = table_content(document, location, None if held is None else TABLE_ID)
    catalog.commit(branch, [Put(key, content, metadata=split_metadata(text))], content_ids={} if held else {key: TABLE_ID})


def repeat_report(store: Store, listed: Any, *, is_whole: bool = True) -> float:
    """The seconds of a report. Where ``is_whole``, all files of the listing but the strays are live."""
    rows = RealmRegistry(store).open_realm("acme")
    definition = Catalogs(rows).read_catalog("lake")
    started = time.perf_counter()
    read = report_files(store, rows, definition, listing=listed)
    taken = time.perf_counter() - started
    assert not read.report.blocked, read.report.blocked
    found = sum(read.report.files.get(code, 0) for code in ("NeverHeld", "InGrace"))
    # beside the strays there are the metadata files that Iceberg's procedure reads
    assert STRAYS <= found <= STRAYS + BRANCHES if is_whole else found > STRAYS, read.report.files
    return taken


def _forget(base: Path) -> None:
    """Remove what reports have written for themselves."""
    for file in sorted(base.rglob("*_headwater*"), reverse=True):
        if file.is_file():
            file.unlink()
