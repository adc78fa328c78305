"""What the public API reads from files and writes to them: manifests, reports of imports, configurations of engines."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import headwater

COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return headwater.write_first_manifest(tmp_path / "manifests", realm="beta", catalog="pond")


def test_first_manifest_is_written_compared_and_applied(store: headwater.Connection, manifest: Path, tmp_path: Path) -> None:
    told = store.apply(manifest, dry_run=True)
    assert told[0].steps[0] == "create realm beta"
    assert [(each.different, each.missing) for each in store.compare(manifest)] == [(True, True), (True, True)]
    assert store.realms() == []

    assert [each.error for each in store.apply(manifest.parent, credentials=tmp_path / "credentials")] == ["", ""]
    assert [each.different for each in store.compare(manifest)] == [False, False]
    manifest.write_text(manifest.read_text().replace("deletionPolicy: Retain  ", "deletionPolicy: Purge  ", 1))
    [realm, _] = store.compare(manifest)
    assert [(each.field, each.stored, each.declared) for each in realm.fields] == [("deletionPolicy", '"Retain"', '"Purge"')]


def test_first_manifest_is_not_overwritten(manifest: Path) -> None:
    with pytest.raises(headwater.RefusedError, match="is there already"):
        headwater.write_first_manifest(manifest.parent)
    with pytest.raises(headwater.RefusedError):
        headwater.write_first_manifest(manifest.parent / "other", realm="no realm")


def test_manifests_of_a_store_in_memory_are_compared(manifest: Path, tmp_path: Path) -> None:
    """A store in memory cannot be opened a second time: what is looked at is a copy of the open one."""
    with headwater.connect("memory://", create=True) as opened:
        opened.apply(manifest, credentials=tmp_path / "credentials")

        assert [each.different for each in opened.compare(manifest)] == [False, False]
        assert [each.id for each in opened.realms()] == ["beta"]


def test_deletion_takes_what_manifests_describe(store: headwater.Connection, manifest: Path, tmp_path: Path) -> None:
    store.apply(manifest, credentials=tmp_path / "credentials")
    planned = store.delete_described(manifest, dry_run=True)
    assert store.compare(manifest)[0].different is False

    done = store.delete_described(manifest)
    assert [each.subject for each in planned] == [each.subject for each in done]
    assert any(each.steps for each in done) and {each.error for each in done} == {""}
    assert [each.id for each in store.realms()] == ["beta"], "Retain leaves it"


def test_wrong_manifest_is_refused_whole(store: headwater.Connection, manifest: Path) -> None:
    manifest.write_text(manifest.read_text().replace("kind: Catalog", "kind: Catalogue"))
    with pytest.raises(headwater.ManifestError, match="Catalogue"):
        store.apply(manifest)
    assert store.realms() == []


@pytest.fixture
def foreign_tables(tmp_path: Path) -> str:
    """A folder with two tables that another store made."""
    with headwater.connect("memory://", create=True) as other:
        realm = other.create_realm("other", credentials=tmp_path / "other.json")
        catalog = realm.create_catalog("lake", base_location=(tmp_path / "foreign").as_uri()).branch().pyiceberg()
        catalog.create_namespace("sales")
        for name in ("orders", "visits"):
            catalog.create_table(f"sales.{name}", COLUMNS, location=(tmp_path / "foreign" / "sales" / name).as_uri())
    return str(tmp_path / "foreign")


def test_import_is_reported_table_by_table(store: headwater.Connection, foreign_tables: str, tmp_path: Path) -> None:
    realm = store.create_realm("acme", credentials=tmp_path / "root.json")
    lake = realm.create_catalog("lake", base_location=(tmp_path / "foreign").as_uri())
    with pytest.raises(headwater.NotFoundError, match="no import into catalog 'lake'"):
        lake.write_import_report(tmp_path / "none.html")

    done = lake.import_tables(foreign_tables, exclude=["sales.v*"], report=tmp_path / "now.parquet")
    [row] = lake.import_report()
    assert (done["imported"], row.key, row.outcome, row.code) == (1, "sales.orders", "imported", "")
    assert row.commit == lake.branch().hash()
    assert parquet.read_table(tmp_path / "now.parquet").num_rows == 1
    assert lake.import_tables(foreign_tables)["surveyed"] == 2
    assert lake.write_import_report(tmp_path / "later.html") == 2
    assert (tmp_path / "later.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")

    main = lake.branch()
    assert [(each.key, each.is_home) for each in main.adopt("sales.visits")] == [("sales.visits", True)]
    assert [each.key for each in main.guests()] == ["sales.orders"]
    assert main.adopt_all(under="other") == []
    assert [(each.key, each.is_home) for each in main.adopt_all(under="sales")] == [("sales.orders", True)]
    assert main.guests() == []


def test_import_that_contradicts_itself_is_refused(store: headwater.Connection, tmp_path: Path) -> None:
    lake = store.realm("acme").catalog("lake")
    with pytest.raises(headwater.RefusedError, match=r"neither in \.parquet nor in \.html"):
        lake.import_tables("lake", report=tmp_path / "now.csv")
    with pytest.raises(headwater.RefusedError, match="dropped by a sync"):
        lake.import_tables("lake", gone="drop")
    with pytest.raises(headwater.RefusedError, match="leave detach out"):
        lake.import_tables("lake", dry_run=True, detach=True)
    with pytest.raises(headwater.RefusedError, match="name one location"):
        lake.import_tables()


def test_files_are_listed_by_code_and_place(store: headwater.Connection, tmp_path: Path) -> None:
    lake = store.create_realm("acme", credentials=tmp_path / "root.json").create_catalog(
        "lake", base_location=(tmp_path / "lake").as_uri()
    )
    table = lake.branch().pyiceberg()
    table.create_namespace("sales")
    folder = Path(table.create_table("sales.orders", COLUMNS).location().removeprefix("file://"))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "stray.parquet").write_bytes(b"left by nobody")
    lake.report_files()

    [stray] = lake.unreferenced_files()
    assert stray.path.endswith("stray.parquet") and stray.code in store.file_codes()
    assert [each.path for each in lake.unreferenced_files(codes=[stray.code], place=f"{stray.place}/")] == [stray.path]
    assert list(lake.unreferenced_files(place="file:///elsewhere")) == []
    with pytest.raises(headwater.RefusedError, match="'Lost' is no code of a file"):
        lake.unreferenced_files(codes=["Lost"])


def test_engines_are_told_how_they_reach_a_catalog(store: headwater.Connection, tmp_path: Path) -> None:
    lake = store.create_realm("acme", credentials=tmp_path / "root.json").catalog("lake")
    assert {"spark", "trino", "pyiceberg"} <= {each.name for each in store.engines(url="http://lake.example.com")}

    plain = lake.client_config("trino", ref="dev", url="http://lake.example.com/iceberg/")
    assert "iceberg.rest-catalog.warehouse=acme/lake@dev" in plain.forms[0].text
    assert plain.forms[0].before is None
    named = lake.client_config("trino", credentials=tmp_path / "root.json")
    shown = lake.client_config("trino", credentials=tmp_path / "root.json", show_secret=True)
    secret = json.loads((tmp_path / "root.json").read_text())["clientSecret"]
    assert secret not in repr(named) and named.forms[0].before is not None
    assert secret in shown.forms[0].text


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"engine": "abacus"}, headwater.RefusedError, "'abacus' is no engine"),
        ({"engine": "spark", "form": "yaml"}, headwater.RefusedError, "has no form 'yaml'"),
        ({"engine": "spark", "show_secret": True}, headwater.RefusedError, "goes with credentials"),
        ({"engine": "spark", "url": "ftp://lake"}, headwater.RefusedError, "is no URL of a server"),
        ({"engine": "spark", "url": "http://127.0.0.1:9", "check": True}, headwater.UnavailableError, "no server answers"),
    ],
)
def test_wrong_configuration_is_refused(asked: dict[str, object], error: type[Exception], told: str) -> None:
    with headwater.connect("memory://", create=True) as opened:
        lake = opened.realm("acme").catalog("lake")
        with pytest.raises(error, match=told):
            lake.client_config(**asked)  # type: ignore[arg-type]
