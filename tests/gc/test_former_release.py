"""The release before this one beside today's, on one store: neither deletes, nor leaves out, what only the other knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from extensions import Widget, add_widgets, installed
from fake_clock import FakeClock
from former_release import FormerRelease
from headwater import Store, open_store
from headwater.backup import ExportOrder, export_realm
from headwater.clock import SystemClock
from headwater.fsck import check_store, is_bad
from headwater.gc import collect_realm
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import RealmStore

pytestmark = [pytest.mark.long]

COLLECT = """
from headwater import Settings, open_store
from headwater.gc import collect_realm
from headwater.errors import HeadwaterError
import headwater
assert "{folder}" in headwater.__file__
with open_store(sys.argv[1], clock=Later()) as store:
    try:
        print(collect_realm(store, "acme").deleted)
    except HeadwaterError as fault:
        sys.exit(f"{{type(fault).__name__}}: {{fault}}")
"""
EXPORT = """
from pathlib import Path
from headwater import open_store
from headwater.backup import ExportOrder, export_realm
from headwater.errors import HeadwaterError
with open_store(sys.argv[1], clock=Later()) as store:
    try:
        export_realm(store, ExportOrder(realm="acme", file=Path(sys.argv[2]), time=None, task=store.new_id()))
    except HeadwaterError as fault:
        sys.exit(f"{type(fault).__name__}: {fault}")
"""
IMPORT = """
from pathlib import Path
from headwater import open_store
from headwater.backup import load_realm
from headwater.errors import HeadwaterError
with open_store(sys.argv[1], clock=Later()) as store:
    try:
        load_realm(store, "copy", Path(sys.argv[2]))
    except HeadwaterError as fault:
        sys.exit(f"{type(fault).__name__}: {fault}")
"""
CHECK = """
from headwater import open_store
from headwater.fsck import check_store
with open_store(sys.argv[1], clock=Later()) as store:
    print([finding.code.value for finding in check_store(store, realm="acme")])
"""
DAY = 86_400.0


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> FormerRelease:
    return FormerRelease(tmp_path_factory.mktemp("former"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store with a realm, by the machine's clock, as the other release has it."""
    with open_store(url) as opened:
        realms = RealmRegistry(opened)
        realms.create_realm("acme")
        bootstrap(realms, "acme", hash_credentials(new_credentials()))
        yield opened


@pytest.fixture
def rows(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm("acme")


def widgets_in(rows: RealmStore) -> int:
    return sum(key.type == Widget.type_name for batch in rows.scan_objects() for key in batch)


def open_later(url: str, days: float) -> Store:
    return open_store(url, clock=FakeClock(SystemClock().now() + round(days * DAY * 1_000_000)))


def is_damaged(url: str, *, days: float) -> bool:
    with open_later(url, days) as later:
        return is_bad(check_store(later, realm="acme"))


def collect_code(former: FormerRelease) -> str:
    return COLLECT.format(folder=former.folder)


def test_former_release_still_collects_what_it_knows(former: FormerRelease, url: str, store: Store) -> None:
    done = former.run(collect_code(former), url, days_later=3)

    assert done.returncode == 0, done.stderr


def test_former_release_refuses_to_collect_a_realm_with_references_of_extensions(
    former: FormerRelease, url: str, store: Store, rows: RealmStore, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        add_widgets(rows, 60)
    done = former.run(collect_code(former), url, days_later=3)

    assert (done.returncode, done.stdout) == (1, "")
    assert "listed-reference" in done.stderr
    assert "use the release that" in done.stderr
    assert widgets_in(rows) == 60


def test_former_release_deletes_nothing_beside_collections_of_this_one(
    former: FormerRelease, url: str, store: Store, rows: RealmStore, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        add_widgets(rows, 60)
    for days in (3, 6):
        with open_later(url, days) as later:
            collect_realm(later, "acme")
        former.run(collect_code(former), url, days_later=days + 1)

    assert widgets_in(rows) == 60
    assert not is_damaged(url, days=8)


def test_former_release_refuses_to_export_it(
    former: FormerRelease, url: str, store: Store, rows: RealmStore, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        add_widgets(rows, 1)
    done = former.run(EXPORT, url, str(tmp_path / "acme.realm"), days_later=1)

    assert done.returncode == 1
    assert "listed-reference" in done.stderr
    assert not (tmp_path / "acme.realm").exists()


def test_former_release_refuses_its_archive(
    former: FormerRelease, url: str, store: Store, rows: RealmStore, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        add_widgets(rows, 1)
    file = tmp_path / "acme.realm"
    export_realm(store, ExportOrder(realm="acme", file=file, time=None, task=store.new_id()))
    done = former.run(IMPORT, f"sqlite:///{tmp_path}/other.db", str(file), days_later=1)

    assert done.returncode == 1
    assert "format 3" in done.stderr


def test_former_release_names_what_it_does_not_know(
    former: FormerRelease, url: str, store: Store, rows: RealmStore, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        add_widgets(rows, 1)
    done = former.run(CHECK, url)

    assert "TYPE_UNKNOWN" in done.stdout, done.stderr


def test_this_release_keeps_what_the_former_made(former: FormerRelease, url: str, store: Store, rows: RealmStore) -> None:
    made = """
from headwater import open_store
from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry
with open_store(sys.argv[1]) as store:
    lake = Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("lake", base_location="s3://lake/")
"""
    done = former.run(made, url)
    assert done.returncode == 0, done.stderr
    with open_later(url, 3) as later:
        collect_realm(later, "acme")

    assert not is_damaged(url, days=4)
