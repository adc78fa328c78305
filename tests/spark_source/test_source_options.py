"""What a reader may say, and the sentences for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import open_store
from headwater.errors import RefusedError
from headwater_workers.pipeline.source.reader_options import request_of

URL = "postgresql://ann:hunter2@db.example/lake"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "with space" / "store.db"
    path.parent.mkdir()
    open_store(f"sqlite:///{path}".replace(" ", "%20")).close()
    return path


def test_path_of_load_names_the_table() -> None:
    assert request_of({"path": "entries", "url": URL}).table == "entries"


def test_request_does_not_show_the_password() -> None:
    assert "hunter2" not in repr(request_of({"table": "entries", "url": URL}))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": "tables", "url": URL}, "no table 'tables': set the option table to one of objects, references, commits"),
        ({"url": URL}, "no table ''"),
        ({"path": "objects", "table": "entries", "url": URL}, "no table 'objects'"),
        ({"table": "entries", "url": URL, "branch": "main"}, "no option branch: its options are table, url, store, realm"),
        ({"option.table": "entries", "option.url": URL, "owner": "ann", "provider": "headwater"}, "by CREATE TEMPORARY VIEW"),
        ({"table": "entries", "url": URL, "columns": "key, size"}, "no column size: its columns are realm, catalog, ref"),
        ({"table": "entries", "url": URL, "columns": "key,key"}, "names a column twice"),
        ({"table": "entries", "url": URL, "partitions": "0"}, "the option partitions: '0' is not a whole number from 1"),
        ({"table": "entries", "url": URL, "pushdown": "yes"}, "the option pushdown is 'yes': set it to true or false"),
        ({"table": "objects", "url": URL, "at": "main"}, "table objects is read as it is now"),
        ({"table": "objects", "url": URL, "catalog": "lake"}, "catalogs share objects"),
        ({"table": "objects", "url": URL, "ref": "main"}, "read as it is now: leave the option ref away"),
        ({"table": "entries", "url": URL, "ref": "main", "at": ""}, "read at one state: leave the option ref away"),
        ({"table": "commits", "url": URL, "prefix": "sales."}, "table commits has no keys"),
        ({"table": "entries", "url": URL, "prefix": "sales\\"}, "end it with a dot"),
        ({"table": "entries", "url": URL, "store": URL}, "set one of them"),
        ({"table": "entries", "url": "memory://"}, "memory:// lives in one process"),
        ({"table": "entries", "url": "sqlite:////nowhere/store.db"}, "there is no store in /nowhere/store.db"),
    ],
)
def test_wrong_option_is_said(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(RefusedError, match=sentence):
        request_of(options)


def test_password_in_a_shown_option_is_refused_unshown() -> None:
    with pytest.raises(RefusedError, match=r"set the option url instead") as refused:
        request_of({"table": "entries", "store": URL})

    assert "hunter2" not in str(refused.value) and "ann:***@db.example" in str(refused.value)


def test_environment_names_the_store_without_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE", URL)

    assert request_of({"table": "entries"}).url == URL


def test_file_is_named_so_that_other_processes_find_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    url = request_of({"table": "entries", "store": "sqlite:///store.db?timeout=5s"}).url
    monkeypatch.chdir("/")

    assert url.endswith("/with%20space/store.db?timeout=5s")
    with open_store(url) as store:
        assert file.samefile(store.backend._path)  # type: ignore[attr-defined]


def test_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        request_of({"table": "entries", "store": f"sqlite:///{tmp_path}/typo.db"})

    assert list(tmp_path.iterdir()) == []
