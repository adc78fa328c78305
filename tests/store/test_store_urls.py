"""A store is a URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import RefusedError
from headwater.store import open_store


def test_relative_path_is_taken_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///store.db") as store:
        assert store.url == "sqlite:///store.db"

    assert (tmp_path / "store.db").is_file()


def test_absolute_path_has_four_slashes(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db"):
        assert (tmp_path / "store.db").is_file()


def test_two_memory_stores_share_nothing() -> None:
    with open_store("memory://") as one, open_store("memory://") as two:
        one.new_id()

        assert two.system.is_empty()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://host/db", "unknown scheme 'mysql'"),
        ("store.db", "is not a URL: write scheme://place/name"),
        ("sqlite:store.db", "is not a URL"),
        ("sqlite:///:memory:", "write memory:// for a store in memory"),
        ("sqlite:///a%00b.db", "has a NUL in it"),
        ("sqlite:///\udcff.db", "is not a URL"),
        (f"sqlite:///{'n' * 300}.db", "its name is too long"),
        (f"sqlite:///{'n' * 300}/store.db", "the folder of .* does not exist"),
        ("sqlite:///store.db?timeout=25h", "above 0 and at most 1d"),
        ("sqlite:///store.db?timeout=0s", "above 0 and at most 1d"),
        ("other://host:nan/db", "has a port that is no number"),
        ("sqlite://store.db", "sqlite:///file.db"),
        ("sqlite:///", "sqlite:///file.db"),
        ("memory://?mode=ro", "takes no options"),
        ("sqlite:///store.db?mode=ro", "no option .mode.; the options of sqlite:// are timeout"),
        ("memory://#x", "has a # in it"),
        ("memory://here", "has no name"),
    ],
)
def test_url_that_names_no_store_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "other://user:s3cret@host/db",
        "other://host/db?password=s3cret",
        "sqlite://u:s3cret@host/x?key=s3cret",
        "user:s3cret@host/db",
        "postgresql:user:s3cret@host/db",
        "postgresql:/user:s3cret@host/db",
        "postgresql:///user:s3cret@host/db",
        "postgresql//user:s3cret@host/db",
        "postgre sql://user:s3cret@host/db",
        "postgresql://user:s3cret/db",
        "postgresql://user:s3cret",
        "postgresql://user:s3cret%00@host/db",
        "postgresql://user:s3cret\udcff@host/db",
        "mongodb:///user:s3cret@host/db",
    ],
)
def test_password_is_never_shown(url: str) -> None:
    with pytest.raises(RefusedError) as refused:
        open_store(url)

    assert "s3cret" not in str(refused.value)
