"""pynessie as a library: what its client reads and changes, and which exception of its own each refusal becomes."""

from __future__ import annotations

import pytest
from client_lakes import SCHEMA, ClientLake
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from headwater.catalogs import ContentKey
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH
from pynessie_env import NessieFault, Pynessie

pytestmark = pytest.mark.long

TABLE = "ContentKey(['sales', 'orders'])"
HEAD = "client.get_reference('main').hash_"


@pytest.fixture
def orders(lake: ClientLake) -> ClientLake:
    """A lake with the table ``sales.orders``."""
    lake.create_orders((1, "Oslo"), (2, "Bergen"))
    return lake


def test_client_reads_what_others_wrote(pynessie: Pynessie, orders: ClientLake) -> None:
    table, content = (
        orders.connect().load_table("sales.orders"),
        orders.catalog.get_content(None, ContentKey.of("sales", "orders")),
    )
    assert content is not None
    read = pynessie.execute(
        f"""
content = client.get_content('main', {TABLE})
result = [content.id, content.metadata_location, content.snapshot_id, content.schema_id, content.spec_id, content.sort_order_id]
"""
    )

    assert read == [str(content.id), table.metadata_location, table.metadata.current_snapshot_id, 0, 0, 0]
    assert pynessie.execute("result = [entry.name.elements for entry in client.list_keys('main').entries]") == [
        ["sales"],
        ["sales", "orders"],
    ]


def test_commit_of_several_operations_is_one(pynessie: Pynessie, orders: ClientLake) -> None:
    before = orders.commits()
    pynessie.execute(
        f"""
table = client.get_content('main', {TABLE})
ops = [
    Put(ContentKey(['eu']), Namespace(None, ['eu'])),
    Delete({TABLE}),
    Put(ContentKey(['eu', 'orders']), table),
]
client.commit('main', {HEAD}, 'move it', 'ann', *ops)
"""
    )

    [commit, *_] = orders.catalog.log()
    assert (commit.meta.message, commit.meta.authors) == ("move it", ("ann",))
    assert orders.commits() == before + 1 and orders.ids("eu.orders") == [1, 2]
    assert orders.catalog.get_content(None, ContentKey.of("sales", "orders")) is None


def test_expected_state_of_others_is_checked(pynessie: Pynessie, orders: ClientLake) -> None:
    unchanged = f"client.commit('main', {{!r}}, 'check', None, Unchanged({TABLE}), Put(ContentKey([{{!r}}]), Namespace(None, [{{!r}}])))"
    old = next(iter(orders.catalog.log())).hash
    orders.connect().create_namespace("beside")
    pynessie.execute(unchanged.format(old, "eu", "eu"))
    orders.append_orders((3, "Voss"))

    with pytest.raises(NessieFault) as fault:
        pynessie.execute(unchanged.format(old, "us", "us"))
    assert (fault.value.kind, fault.value.code) == ("NessieReferenceConflictException", "REFERENCE_CONFLICT")
    assert "sales.orders" in fault.value.text


def test_views_are_read(pynessie: Pynessie, orders: ClientLake) -> None:
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1,
        summary={},
        representations=[SQLViewRepresentation(type="sql", sql="SELECT city FROM sales.orders", dialect="spark")],
        default_namespace=["sales"],
    )
    orders.connect().create_view("sales.towns", SCHEMA, version)

    assert pynessie.execute(
        "view = client.get_content('main', ContentKey(['sales', 'towns'])); result = [view.version_id, view.sql_text, view.dialect]"
    ) == [1, "", ""]


@pytest.mark.parametrize(
    ("program", "kind", "code", "status"),
    [
        ("client.get_reference('none')", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        ("client.list_keys('none')", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        ("list(client.get_log('none'))", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        ("client.get_diff('main', 'none')", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        ("client.get_content('main', ContentKey(['none']))", "NessieContentNotFoundException", "CONTENT_NOT_FOUND", 404),
        (
            f"client.create_branch('main', 'main', {HEAD})",
            "NessieReferenceAlreadyExistsException",
            "REFERENCE_ALREADY_EXISTS",
            409,
        ),
        ("client.create_branch('x', 'main', None)", "NessieException", "BAD_REQUEST", 400),
        (f"client.create_branch('x..y', 'main', {HEAD})", "NessieException", "BAD_REQUEST", 400),
        (f"client.delete_branch('main', {HEAD})", "NessieException", "BAD_REQUEST", 400),
        (f"client.delete_branch('none', {HEAD})", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        ("client.merge('none', 'main')", "NessieReferenceNotFoundException", "REFERENCE_NOT_FOUND", 404),
        (
            f"client.commit('main', {HEAD}, 'x', None, Put(ContentKey(['sales']), Namespace(None, ['sales'])))",
            "NessieException",
            "BAD_REQUEST",
            400,
        ),
        (
            f"client.commit('main', {HEAD}, 'x', None, Delete(ContentKey(['none'])))",
            "NessieReferenceConflictException",
            "REFERENCE_CONFLICT",
            409,
        ),
        (
            f"client.commit('main', {HEAD}, 'x', None, Delete(ContentKey(['sales'])))",
            "NessieReferenceConflictException",
            "REFERENCE_CONFLICT",
            409,
        ),
        (
            f"client.commit('main', {HEAD}, 'x', None, Put(ContentKey(['eu', 'de']), Namespace(None, ['eu', 'de'])))",
            "NessieReferenceConflictException",
            "REFERENCE_CONFLICT",
            409,
        ),
    ],
)
def test_refusal_becomes_its_own_exception(
    pynessie: Pynessie, orders: ClientLake, program: str, kind: str, code: str, status: int
) -> None:
    before = orders.commits()
    with pytest.raises(NessieFault) as fault:
        pynessie.execute(program)

    assert (fault.value.kind, fault.value.code, fault.value.status) == (kind, code, status)
    assert orders.commits() == before


def test_branch_is_assigned_to_before_all_commits(pynessie: Pynessie, orders: ClientLake) -> None:
    head = next(iter(orders.catalog.log())).hash
    pynessie.execute(
        f"""
client.create_branch('kept', 'main', {head!r})
client.assign_branch('main', 'main', {NO_ANCESTOR_HASH!r}, {head!r})
"""
    )

    assert pynessie.execute(f"result = {HEAD}") == NO_ANCESTOR_HASH
    assert orders.catalog.count("main") == 0
    assert orders.catalog.count("kept") == 2


def test_unknown_expected_hash_of_a_deletion_is_a_conflict(pynessie: Pynessie, orders: ClientLake) -> None:
    pynessie.execute(f"client.create_branch('dev', 'main', {HEAD})")

    with pytest.raises(NessieFault) as fault:
        pynessie.execute(f"client.delete_branch('dev', {'ab' * 32!r})")
    assert (fault.value.kind, fault.value.code) == ("NessieReferenceConflictException", "REFERENCE_CONFLICT")
