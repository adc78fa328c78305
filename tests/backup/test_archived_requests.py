"""A realm that was loaded knows no request of the realm that was exported, though its commits are the same."""

from __future__ import annotations

from pathlib import Path

from archived import REALM, SLACK, exported, open_lake

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import load_realm
from headwater.catalogs import ContentKey, IcebergTable, Put
from request_keys import make_request

NEW = ContentKey.of("new")


def test_request_is_another_one_in_a_loaded_realm(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    table = IcebergTable(metadata_location="s3://lake/new/v1.json")
    made = open_lake(store).commit("main", [Put(NEW, table)], request=make_request())
    clock.advance(SLACK)
    load_realm(target, REALM, exported(store, tmp_path / "requests.realm").file)

    again = open_lake(target).commit("main", [Put(ContentKey.of("more"), table)], request=make_request())

    assert open_lake(store).commit("main", [], request=make_request()).commit_id == made.commit_id
    assert again.changed and not again.is_replay
    assert open_lake(target).get_content("main", NEW) is not None
