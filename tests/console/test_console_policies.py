"""Policies in the console: set, changed and removed, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from console_browser import Console
from console_screens import IN_LAKE
from console_server import ConsoleServer
from shown_lake import LAKE, REALM

from headwater.catalogs import ContentKey
from headwater.policies import StoredPolicy, find_policy_table, list_policies, unset_policy

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
POLICIES = (*IN_LAKE, "policies")
ORDERS = "sales.orders"


@pytest.fixture
def stored(server: ConsoleServer) -> Iterator[Callable[[], list[StoredPolicy]]]:
    """Tells the policies of the lake, which has none afterwards."""
    rows, definition = server.lake.registry.open_realm(REALM), server.lake.catalogs.read_catalog(LAKE)

    def read() -> list[StoredPolicy]:
        return list_policies(rows, definition.id)

    yield read
    for policy in read():
        unset_policy(rows, definition, policy.kind, policy.content_id)


def set_policy(console: Console, text: str, *, kind: str = "snapshots", table: str = "") -> None:
    console.press("Set a policy")
    dialog = console.page.locator("dialog[open]")
    dialog.get_by_label("Kind").select_option(kind)
    dialog.get_by_label("Table").fill(table)
    dialog.get_by_label("What it says").fill(text)
    console.confirm("Set it")


def sources(console: Console) -> list[str]:
    """What the table of values says of snapshots: what holds, and where it comes from."""
    rows = console.page.locator("table[aria-label='Values that hold'] tbody tr").all_inner_texts()
    return [" ".join(row.split()) for row in rows if "snapshots" in row]


def test_policy_of_a_table_stands_before_that_of_its_catalog(
    visit: Visit, stored: Callable[[], list[StoredPolicy]], server: ConsoleServer
) -> None:
    console = visit()
    console.go(*POLICIES, key=ORDERS)
    assert sources(console)
    set_policy(console, '[{"branches": "*", "maxAge": "7d"}]')
    console.see("maxAge: 7d")
    assert any("7d" in row and "catalog" in row for row in sources(console))
    set_policy(console, '[{"branches": "*", "maxAge": "3d"}]', table=ORDERS)
    console.see("maxAge: 3d")
    table = find_policy_table(server.lake.catalogs.open_catalog(LAKE), ContentKey.parse(ORDERS))

    assert {(each.content_id, each.snapshots[0].max_age_seconds) for each in stored()} == {
        (None, 7 * 86400),
        (table, 3 * 86400),
    }
    assert any("3d" in row for row in sources(console)) and not any("7d" in row for row in sources(console))


def test_policy_is_changed_from_what_it_says_and_removed(visit: Visit, stored: Callable[[], list[StoredPolicy]]) -> None:
    console = visit()
    console.go(*POLICIES)
    set_policy(console, '{"keep": 7}', kind="metadata-files")
    console.see("keep: 7")
    console.press("Change")
    field = console.page.get_by_label("What it says")
    assert field.input_value() == '{\n  "keep": 7\n}'
    field.fill('{"keep": 8}')
    console.confirm("Set it")
    console.see("keep: 8")
    [policy] = stored()
    assert policy.metadata_files is not None and policy.metadata_files.keep == 8
    console.press("Remove")
    console.confirm("Remove it")
    console.see("None: defaults hold")

    assert stored() == []


def test_text_of_a_policy_is_that_of_its_kind(visit: Visit, stored: Callable[[], list[StoredPolicy]]) -> None:
    console = visit()
    console.go(*POLICIES)
    console.press("Set a policy")
    kind, field = console.page.get_by_label("Kind"), console.page.get_by_label("What it says")
    field.fill('[{"branches": "dev"}]')
    kind.select_option("file-collection")
    assert '"mode": "report"' in field.input_value()
    kind.select_option("snapshots")
    assert field.input_value() == '[{"branches": "dev"}]'
    field.fill("[{")

    assert console.page.get_by_role("button", name="Set it").is_disabled()
    assert stored() == []


def test_policy_of_a_lost_table_is_not_the_catalogs(visit: Visit, server: ConsoleServer) -> None:
    catalogs = server.lake.catalogs
    catalogs.create_catalog("passing", base_location=(server.lake.folder / "passing").as_uri())
    client = server.lake.client(catalog="passing")
    client.create_namespace("sales")
    client.create_table("sales.gone", server.lake.client().load_table("sales.returns").schema())
    console = visit()
    console.go("realms", REALM, "catalogs", "passing", "policies")
    set_policy(console, '{"keep": 5}', kind="metadata-files", table="sales.gone")
    console.see("keep: 5")
    set_policy(console, '{"keep": 9}', kind="metadata-files")
    console.see("keep: 9")
    client.drop_table("sales.gone")
    console.page.reload()
    console.see("not on the default branch")
    rows = console.page.locator("table[aria-label=Policies] tbody tr")

    assert [row.get_by_role("button", name="Remove").count() for row in rows.all()] == [1, 0]
    catalogs.delete_catalog("passing")
