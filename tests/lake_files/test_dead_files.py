"""The search for dead files, end to end: what is live in the store, what is on the disk, and what keeps places from yielding anything."""

from __future__ import annotations

import json
import os
from pathlib import Path
from uuid import UUID

import pytest
from searched_lake import SearchedLake

from fake_clock import FakeClock
from headwater.catalogs import Catalogs
from headwater.catalogs.known_metadata import own_name
from headwater.gc import collect_realm
from headwater.lake_files.file_columns import listed_files
from headwater.lake_files.file_reasons import FileReason, PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace
from lakes import REALM

A, B, OLD_FILE = "orders/data/a.parquet", "orders/data/b.parquet", "orders/data/old.parquet"


@pytest.fixture
def held(lake: SearchedLake, clock: FakeClock) -> SearchedLake:
    """A lake of which a first search has seen a and old, and whose stored versions name only a since."""
    lake.put_table("orders", lake.write(A, OLD_FILE))
    with lake.search():
        pass
    lake.put_table("orders", lake.write(A))
    forget_history(lake, clock)
    return lake


def forget_history(lake: SearchedLake, clock: FakeClock) -> None:
    """Let the collector take what no retention keeps."""
    clock.advance(4 * 3600.0)
    collect_realm(lake.store, REALM)
    lake.store.cache.clear()


def test_file_that_no_stored_version_names_is_dead(lake: SearchedLake, clock: FakeClock) -> None:
    first = lake.put_table("orders", lake.write(A, OLD_FILE)).removeprefix(lake.location(""))
    with lake.search():
        pass
    lake.put_table("orders", lake.write(A))
    forget_history(lake, clock)

    assert lake.dead() == {OLD_FILE: FileReason.IN_GRACE, first: FileReason.IN_GRACE}


def test_search_deletes_nothing(held: SearchedLake) -> None:
    before = {path for path in held.folder.rglob("*") if path.is_file() and "_headwater" not in str(path)}
    with held.search():
        pass

    assert before == {path for path in held.folder.rglob("*") if path.is_file() and "_headwater" not in str(path)}


def test_file_of_a_stored_commit_that_no_branch_shows_is_live(lake: SearchedLake) -> None:
    lake.put_table("orders", lake.write(OLD_FILE))
    lake.put_table("orders", lake.write(A))

    assert lake.dead() == {}


def test_file_of_a_dropped_table_stays_while_commits_are_stored(lake: SearchedLake, clock: FakeClock) -> None:
    given = [lake.location("orders")]
    lake.put_table("orders", lake.write(A))
    lake.drop_table("orders")

    assert lake.dead(prefixes=given) == {}

    forget_history(lake, clock)

    assert lake.dead(prefixes=given)[A] is FileReason.IN_GRACE


def test_file_of_another_branch_is_live(held: SearchedLake) -> None:
    held.catalog.create_branch("dev")
    held.put_table("orders", held.write(OLD_FILE), branch="dev")

    assert OLD_FILE not in held.dead()


def test_file_of_a_deleted_catalog_is_live(lake: SearchedLake, tmp_path: Path) -> None:
    other = SearchedLake(lake.store, tmp_path / "lake" / "else", name="other")
    lake.put_table("orders", lake.write(A))
    other.put_table("clone", lake.write(OLD_FILE))
    Catalogs(lake.rows).delete_catalog("other")

    assert lake.dead() == {}


def test_table_without_a_stored_document_is_read_at_its_metadata_file(lake: SearchedLake) -> None:
    lake.put_table("orders", lake.write(A), is_stored=False)

    assert lake.dead() == {}


def test_oldest_commit_tells_of_documents_that_are_not_stored(lake: SearchedLake, clock: FakeClock) -> None:
    lake.put_table("orders", lake.write(A), is_stored=False)
    for number in range(3):
        lake.put_table(f"other{number}")
        clock.advance(3600.0)
    forget_history(lake, clock)

    assert lake.dead() == {}
    assert any(version.metadata_location for version in lake.readings[-1].versions)


def test_collection_during_the_scan_loses_no_document_that_is_not_stored(lake: SearchedLake, clock: FakeClock) -> None:
    lake.put_table("orders", lake.write(A), is_stored=False)
    for number in range(3):
        lake.put_table(f"other{number}")
        clock.advance(3600.0)
    forget_history(lake, clock)
    lake.put_table("newest")
    collections = iter([lambda: forget_history(lake, clock)])

    def collect_once(done: int, total: int, unit: str) -> None:
        for collect in collections:
            collect()

    assert lake.dead(progress=collect_once) == {}
    assert lake.readings[-1].read > 4


def test_metadata_file_that_cannot_be_read_blocks_the_bucket(held: SearchedLake) -> None:
    gone = held.put_table("lost", claims=False, is_stored=False)
    Path(gone.removeprefix("file://")).unlink()

    assert held.blocked() == {"orders": PlaceReason.REFERRER_UNREADABLE}


def test_file_outside_of_all_places_is_not_listed(lake: SearchedLake) -> None:
    lake.put_table("orders")
    lake.write("elsewhere/f.parquet")

    assert lake.dead() == {}


def test_prefix_of_a_catalog_is_a_place(lake: SearchedLake) -> None:
    hashed = lake.write("hashed/0a/f.parquet", "hashed/0b/g.parquet")
    lake.put_table("orders", hashed[:1])

    with lake.search() as result:
        assert result.outside == 1
    assert lake.dead(prefixes=[lake.location("hashed")]) == {"hashed/0b/g.parquet": FileReason.NEVER_HELD}


def test_place_that_a_document_states_without_a_claim_is_one(lake: SearchedLake) -> None:
    place = lake.location("written/here")
    lake.write("written/here/f.parquet")
    lake.put_table("orders", properties={"write.data.path": place})

    assert lake.dead() == {"written/here/f.parquet": FileReason.NEVER_HELD}


def test_guest_yields_nothing_and_its_files_are_live(held: SearchedLake) -> None:
    held.guests.add(held.content_id("guest"))
    held.put_table("guest", held.write(OLD_FILE))
    held.write("guest/data/dead.parquet")

    assert OLD_FILE not in held.dead()
    assert held.blocked() == {"guest": PlaceReason.GUEST}


def test_guest_within_a_prefix_leaves_the_prefix_alone(lake: SearchedLake) -> None:
    lake.guests.add(lake.content_id("area/guest"))
    lake.put_table("area/guest")
    lake.write("area/guest/data/x.parquet", "area/y.parquet")

    assert set(lake.dead(prefixes=[lake.location("area")])) == {"area/y.parquet"}


def test_place_that_another_catalog_has_claimed_is_shared(held: SearchedLake, tmp_path: Path) -> None:
    other = SearchedLake(held.store, tmp_path / "other", name="other")
    other.folder = held.folder
    other.put_table("area/theirs")

    assert held.blocked(prefixes=[held.location("area")]) == {"area": PlaceReason.PLACE_SHARED}


def test_policy_of_the_caller_blocks_a_place(held: SearchedLake) -> None:
    off = BlockedPlace(location=held.location("orders"), code=PlaceReason.POLICY_OFF)

    assert held.blocked(blocks=[off]) == {"orders": PlaceReason.POLICY_OFF}
    assert held.dead(blocks=[off]) == {}


def test_live_file_that_is_gone_blocks_its_place(held: SearchedLake) -> None:
    (held.folder / A).unlink()

    assert held.blocked() == {"orders": PlaceReason.LIVE_NOT_LISTED}
    assert held.dead() == {}


def test_folder_that_cannot_be_listed_blocks_its_place(held: SearchedLake) -> None:
    Path(os.fsdecode(bytes(held.folder / "orders") + b"/data/\xff")).mkdir()

    assert held.blocked() == {"orders": PlaceReason.LISTING_INCOMPLETE}
    assert held.dead() == {}


def test_metadata_of_a_stranger_blocks_its_place(held: SearchedLake) -> None:
    held.write("orders/metadata/00009-0e8f4b9e-6a3f-4b9d-a6ee-3a9f3e0c7a11.gz.metadata.json")

    assert held.blocked() == {"orders": PlaceReason.WRITTEN_ELSEWHERE}
    assert held.dead() == {}


def test_metadata_of_a_client_whose_commit_failed_is_no_strangers(held: SearchedLake) -> None:
    held.write(f"orders/metadata/{own_name(held.catalog.definition.id, 7)}")

    assert held.blocked() == {}


def test_metadata_that_a_collected_commit_named_is_no_strangers(lake: SearchedLake, clock: FakeClock) -> None:
    lake.put_table("orders", metadata="orders/metadata/00001-0e8f4b9e-6a3f-4b9d-a6ee-3a9f3e0c7a11.metadata.json")
    lake.put_table("orders")
    forget_history(lake, clock)

    assert lake.blocked() == {}
    assert "orders/metadata/00001-0e8f4b9e-6a3f-4b9d-a6ee-3a9f3e0c7a11.metadata.json" in lake.dead()


def former(lake: SearchedLake, **fields: object) -> str:
    """A metadata file of the table that no commit of the store ever named."""
    [path] = lake.write("orders/metadata/00000-0e8f4b9e-6a3f-4b9d-a6ee-3a9f3e0c7a11.metadata.json")
    uuid = str(UUID(int=int.from_bytes(b"orders", "big")))
    Path(path.removeprefix("file://")).write_text(json.dumps({"table-uuid": uuid, "location": "x", **fields}))
    return path


def test_metadata_from_before_the_import_is_no_strangers(held: SearchedLake) -> None:
    former(held, **{"last-updated-ms": 1_000_000})

    assert held.blocked() == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"last-updated-ms": 4_000_000_000_000},
        {"last-updated-ms": 1_000_000, "table-uuid": "0e8f4b9e-6a3f-4b9d-a6ee-3a9f3e0c7a11"},
        {},
    ],
)
def test_later_metadata_of_the_table_is_a_strangers(held: SearchedLake, fields: dict[str, object]) -> None:
    former(held, **fields)

    assert held.blocked() == {"orders": PlaceReason.WRITTEN_ELSEWHERE}


@pytest.mark.parametrize("name", ["_delta_log/00000000000000000001.json", ".hoodie/hoodie.properties"])
def test_other_table_format_blocks_its_place(held: SearchedLake, name: str) -> None:
    held.write(f"orders/{name}")

    assert held.blocked() == {"orders": PlaceReason.WRITTEN_ELSEWHERE}


def test_relative_path_of_a_version_blocks_everything(held: SearchedLake) -> None:
    held.put_table("odd", ["data/relative.parquet"])

    assert held.blocked() == dict.fromkeys(("odd", "orders"), PlaceReason.REFERRER_UNREADABLE)


def test_listing_of_another_program_is_compared_instead(held: SearchedLake) -> None:
    files = [listed_files((held.location(name),), (1,), (5,)) for name in (A, OLD_FILE)]

    assert held.dead(listing=lambda: files) == {OLD_FILE: FileReason.IN_GRACE}


def test_dry_search_leaves_nothing_behind(held: SearchedLake) -> None:
    dead = held.dead()
    files = set(held.folder.rglob("*"))
    with held.search(is_dry=True) as result:
        assert [file.code for file in result.files()] == list(dead.values())

    assert set(held.folder.rglob("*")) == files
    with held.search() as result:
        assert result.run == 3


def test_counts_tell_what_stays_and_why(held: SearchedLake) -> None:
    held.write("orders/data/A.parquet", "orders/data/x.csv", B)
    with held.search() as result:
        assert result.other_counts["Live"] == result.kept > 0
        assert result.other_counts["LooselyLive"] == 1
        assert result.total(FileReason.UNKNOWN_KIND).files == 1
        assert result.total(FileReason.NEVER_HELD).files == 1
        assert result.there_bytes >= result.kept_bytes


def test_search_that_finds_nothing_new_takes_the_last_result(held: SearchedLake) -> None:
    dead = held.dead()
    reads = len(held.readings)

    with held.search() as result:
        assert result.is_reused
        assert {file.path.removeprefix(f"file://{held.folder}/"): file.code for file in result.files()} == dead
    assert len(held.readings) == reads


def test_new_file_or_new_commit_is_looked_at_anew(held: SearchedLake) -> None:
    held.dead()
    held.write(B)
    assert held.dead()[B] is FileReason.NEVER_HELD

    held.put_table("orders", [held.location(B)])
    assert B not in held.dead()


def test_block_that_may_pass_is_looked_at_anew(held: SearchedLake) -> None:
    gone = Path(held.put_table("lost", claims=False, is_stored=False).removeprefix("file://"))
    text = gone.read_bytes()
    gone.unlink()
    assert held.dead() == {}

    gone.write_bytes(text)
    assert held.dead()[OLD_FILE] is FileReason.IN_GRACE


def test_lost_memory_of_what_was_held_makes_reports_only(held: SearchedLake) -> None:
    kept = search_files(held)
    assert kept
    for path in kept:
        path.unlink()

    assert set(held.dead().values()) == {FileReason.NEVER_HELD}


def test_files_of_searches_that_died_are_removed(held: SearchedLake) -> None:
    held.dead()
    (kept, *_) = before = search_files(held)
    (kept.parent / "00000009-held-died").write_bytes(b"of a search that died")
    held.write(B)
    held.dead()

    assert "00000009-held-died" not in {path.name for path in search_files(held)}
    assert len(search_files(held)) == len(before)


def search_files(lake: SearchedLake) -> list[Path]:
    return sorted(path for path in (lake.folder / "_headwater" / "searches").rglob("*") if path.is_file())


@pytest.mark.parametrize("is_place_linked", [False, True])
def test_file_that_is_live_through_a_linked_folder_is_live(lake: SearchedLake, is_place_linked: bool, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    lake.folder.mkdir(exist_ok=True)
    (lake.folder / "orders").symlink_to(tmp_path / "real") if is_place_linked else (lake.folder / "alias").symlink_to("orders")
    lake.put_table("orders", lake.write(A))
    other = (
        f"file://{tmp_path}/real/{A.removeprefix('orders/')}"
        if is_place_linked
        else lake.location(A.replace("orders", "alias"))
    )
    lake.put_table("copies", [other])
    lake.dead()
    lake.put_table("orders")
    forget_history(lake, lake.store.clock)  # type: ignore[arg-type]

    assert A not in lake.dead()
