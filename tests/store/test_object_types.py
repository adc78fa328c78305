"""Object types: what they say of themselves, and how a process that never imported one finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from strangers import install, run

from headwater.store import StoredObject, object_type, registered_type
from headwater.store.stored_objects import TYPES_GROUP

HARBOUR = """
from headwater.store import ObjectId, StoredObject, object_type

@object_type("harbour-ship")
class Ship(StoredObject, frozen=True, kw_only=True):
    name: str = ""
    def points_to(self):
        return [ObjectId(7)]
"""
READ = """
import msgspec
from headwater.errors import CorruptionError
from headwater.store import ObjectId, RealmId, RealmKey, StoredObject, UnknownObject, open_store
with open_store("memory://") as store:
    rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
    rows.write_objects([(ObjectId(5), UnknownObject(name="harbour-ship", body=msgspec.msgpack.encode({"name": "Ann"})))])
    try:
        found = rows.read_object(ObjectId(5), StoredObject)
        print(type(found).__name__, list(found.points_to()))
    except CorruptionError as fault:
        print(fault)
"""


def install_ship(folder: Path, *, name: str = "harbour", value: str = "harbour:Ship", source: str = HARBOUR) -> None:
    modules = {value.partition(":")[0]: source}
    install(folder, name, group=TYPES_GROUP, points={"harbour-ship": value}, modules=modules)


def test_unimported_type_is_read_by_its_entry_point(tmp_path: Path) -> None:
    install_ship(tmp_path)

    assert run(READ, tmp_path) == "Ship [7]"


def test_row_of_a_type_that_nobody_knows_is_kept(tmp_path: Path) -> None:
    assert run(READ, tmp_path) == "UnknownObject []"


@pytest.mark.long
@pytest.mark.parametrize("source", ["import no_such_package", "1 / 0", "def broken(:", "Ship = None", "", "Ship = dict"])
def test_type_that_cannot_be_loaded_is_not_unknown(tmp_path: Path, source: str) -> None:
    install_ship(tmp_path, source=source)
    told = run(READ, tmp_path)

    assert "object 0000000000000005 of type 'harbour-ship' in realm 'acme'" in told
    assert "its entry point 'harbour:Ship' of package 'harbour'" in told


def test_type_that_two_packages_claim_names_both(tmp_path: Path) -> None:
    install_ship(tmp_path)
    install_ship(tmp_path, name="port", value="port:Ship")
    told = run(READ, tmp_path)

    assert "claimed by 'harbour:Ship' of package 'harbour' and 'port:Ship' of package 'port': uninstall one of them" in told


def test_type_whose_class_has_another_name_names_both(tmp_path: Path) -> None:
    install_ship(tmp_path, source=HARBOUR.replace("harbour-ship", "harbour-boat"))
    told = run(READ, tmp_path)

    assert "'harbour-ship'" in told
    assert "is registered as 'harbour-boat'" in told


@pytest.mark.parametrize("name", ["", "x", "a" * 33, "Note", "9lives", "under_score", "a b", "caf\xe9", "ab\n"])
def test_type_name_has_2_to_32_plain_characters(name: str) -> None:
    with pytest.raises(ValueError, match="2 to 32 characters"):
        object_type(name)


@pytest.mark.parametrize("seconds", [{"cached_seconds": -1}, {"absent_seconds": -1}])
def test_type_is_not_remembered_for_negative_time(seconds: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="less than 0 seconds"):
        object_type("test-negative", **seconds)  # type: ignore[arg-type]


def test_type_knows_its_name_and_how_it_is_treated() -> None:
    @object_type("test-known", updateable=True, cached_seconds=5, absent_seconds=2)
    class Known(StoredObject, frozen=True, kw_only=True):
        pass

    assert registered_type("test-known") is Known
    assert (Known.type_name, Known.updateable, Known.cached_seconds, Known.absent_seconds) == ("test-known", True, 5, 2)
    assert list(Known().points_to()) == []
