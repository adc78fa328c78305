"""pynessie as a library: what its client reads and changes, and which exception of its own each refusal becomes."""

from __future__ import annotations

import pytest
from client_lakes import ClientLake

from headwater.catalogs import ContentKey
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
    table = orders.connect().load_table("sales.orders")
    read = pynessie.execute(
        f"""
content = client.get_content('main', {TABLE})
result = [content.id, content.metadata_location, content.snapshot_id, content.schema_id, content.spec_id, content.sort_order_id]
"""
    )

    assert read[:3] == [str(table.metadata.table_uuid), table.metadata_location, table.current_snapshot().snapshot_id]  # type: ignore[union-attr]
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
    orders.create_view("towns", "SELECT city FROM sales.orders")
    read = "view = client.get_content('main', ContentKey(['sales', 'towns'])); result = [view.sql_text, view.dialect, view.version_id]"

    text, dialect, version = pynessie.execute(read)
    assert version == 1 and text is not None and dialect is not None


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
