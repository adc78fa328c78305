"""Faults of the store and the storage: what an error says is true, and files go or stay by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commits_of_engines import LINES, ORDERS, SALES, SCHEMA, append, set_properties

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from file_writing_client import FileWritingClient, head_of
from headwater import Settings, Store
from headwater.catalogs import Catalog, IcebergTable, Put
from headwater.errors import ConflictError, HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.iceberg_catalog import IcebergCatalog, TableCreation
from headwater.store import open_backend, parse_url

FOREVER = 1_000_000
COPY = SALES.child("copy")
Files = Callable[[], set[str]]


@pytest.fixture
def backend() -> FaultyBackend:
    return FaultyBackend(open_backend(parse_url("memory://")))


@pytest.fixture
def shaky(backend: FaultyBackend, make_realm: Callable[[Store], Catalog]) -> Iterator[IcebergCatalog]:
    """A lake with two tables, on a store whose backend fails when told to, and whose clock only waits when asked to."""
    with Store(backend, url="memory://", settings=Settings(), clock=FakeClock()) as store:
        make_realm(store)
        lake = IcebergCatalog.open(store, "acme", "lake")
        lake.namespaces.create(SALES, {})
        for key in (ORDERS, LINES):
            lake.tables.create(TableCreation(key=key, schema=SCHEMA))
        yield lake


def test_commit_that_did_not_happen_leaves_no_file(shaky: IcebergCatalog, backend: FaultyBackend, files: Files) -> None:
    before = files()
    backend.fail("swap_reference", times=FOREVER)

    with pytest.raises(UnavailableError):
        shaky.tables.commit_many([set_properties(key, owner="ann") for key in (ORDERS, LINES)])

    assert files() == before


def test_commit_of_unknown_outcome_leaves_its_files(shaky: IcebergCatalog, backend: FaultyBackend, files: Files) -> None:
    before = files()
    backend.fail("swap_reference", times=FOREVER, fault=UnknownOutcomeError("lost on the way"))

    with pytest.raises(UnknownOutcomeError):
        shaky.tables.commit_many([set_properties(key, owner="ann") for key in (ORDERS, LINES)])

    assert len(files() - before) == 2


def test_answer_that_was_lost_after_the_commit_is_found_out(shaky: IcebergCatalog, backend: FaultyBackend) -> None:
    commit = append(shaky.tables.load(ORDERS), 1)
    backend.fail("swap_reference", before=False)

    first = shaky.tables.commit(commit)

    assert first.document["current-snapshot-id"] == 1
    assert shaky.tables.commit(commit).etag == first.etag


def test_second_file_that_fails_takes_the_first_with_it(shaky: IcebergCatalog, files: Files) -> None:
    before = files()
    metadata = Path(shaky.tables.load(LINES).metadata_location.removeprefix("file://")).parent
    elsewhere = metadata.rename(metadata.with_name("elsewhere"))
    metadata.write_text("a file where the folder should be")

    with pytest.raises(HeadwaterError):
        shaky.tables.commit_many([set_properties(key, owner="ann") for key in (ORDERS, LINES)])

    metadata.unlink()
    elsewhere.rename(metadata)
    assert files() == before


def test_put_whose_commit_failed_after_its_claim_is_repeated(
    shaky: IcebergCatalog, backend: FaultyBackend, client: FileWritingClient, files: Files
) -> None:
    put, before = Put(COPY, client.content(client.new_document("copy"))), files()
    backend.fail("swap_reference", at=2, times=FOREVER)
    with pytest.raises(UnavailableError):
        shaky.commits.apply_operations([put])
    backend.heal()

    assert shaky.commits.apply_operations([put]).result[COPY] == shaky.tables.load(COPY).content_id
    assert files() == before


def test_put_whose_claim_is_uncertain_did_not_happen(
    shaky: IcebergCatalog, backend: FaultyBackend, client: FileWritingClient
) -> None:
    put = Put(COPY, client.content(client.new_document("copy")))
    backend.fail("swap_reference", times=FOREVER, fault=UnknownOutcomeError("lost on the way"))

    with pytest.raises(UnavailableError, match="its claim may not have been taken"):
        shaky.commits.apply_operations([put])


def test_put_of_unknown_outcome_is_told_as_such(
    shaky: IcebergCatalog, backend: FaultyBackend, client: FileWritingClient, files: Files
) -> None:
    put, before = Put(COPY, client.content(client.new_document("copy"))), files()
    backend.fail("swap_reference", at=2, times=FOREVER, fault=UnknownOutcomeError("lost on the way"))

    with pytest.raises(UnknownOutcomeError):
        shaky.commits.apply_operations([put])

    assert files() == before


def test_key_of_a_lost_race_is_not_named(shaky: IcebergCatalog, backend: FaultyBackend, client: FileWritingClient) -> None:
    content, expected = client.content(client.new_document("copy")), head_of(shaky)
    assert isinstance(content, IcebergTable)

    other = Store(backend, url="memory://", settings=Settings(), clock=FakeClock())  # it is closed with the first one
    hidden = IcebergCatalog.open(other, "acme", "lake").tables

    backend.intervene("swap_reference", lambda: hidden.register(SALES.child("secret"), content.metadata_location), at=2)

    with pytest.raises(ConflictError, match=r"^1 conflict: KEY_CONFLICT sales\.copy: was changed at the same time$"):
        shaky.commits.apply_operations([Put(COPY, content)], expected=expected)
