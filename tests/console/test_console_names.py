"""Names from outside that JavaScript's objects have themselves, and authors that a request made up, in the console."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from console_browser import Console
from console_server import ConsoleServer
from shown_lake import ODD, REALM

from headwater.catalogs import Catalog, CommitMeta, ContentKey, Delete, DeltaLakeTable, Namespace, Put

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
NAMES = ("constructor", "__proto__", "toString")
IN_ODD = ("realms", REALM, "catalogs", ODD)


@pytest.fixture(scope="module")
def odd(server: ConsoleServer) -> Catalog:
    """Folders of such names with a table in each, on a branch; another branch has changed the tables, and so did this one."""
    lake: Catalog = server.lake.catalogs.open_catalog(ODD)
    folders = [Put(ContentKey.of(name), Namespace()) for name in NAMES]
    tables = [Put(ContentKey.of(name, "inside"), DeltaLakeTable()) for name in NAMES]
    lake.create_branch("names")
    lake.commit("names", [*folders, *tables], message="names")
    lake.create_branch("others", "names")
    for branch in ("names", "others"):
        lake.commit(branch, [Put(ContentKey.of(name), _changed(lake, branch, name)) for name in NAMES], message="change")
    return lake


def _changed(lake: Catalog, branch: str, name: str) -> Namespace:
    held = lake.get_content(branch, ContentKey.of(name))
    assert held is not None
    return Namespace(id=held.id, properties={"by": branch})


@pytest.mark.parametrize("room", NAMES)
def test_page_that_is_not_there_says_so(visit: Visit, room: str) -> None:
    console = visit()
    for place in (("realms", REALM, room), ("realms", REALM, room, "x"), (*IN_ODD, room)):
        console.go(*place)
        console.see("The console has no such page")
    assert not console.complaints


def test_folders_open_whatever_their_name(visit: Visit, odd: Catalog) -> None:
    console = visit()
    console.go(*IN_ODD, "tree", "names")
    for name in NAMES:
        row = console.page.get_by_role("treeitem").filter(has_text=name).first
        row.click()
        row.and_(console.page.locator("[aria-expanded=true]")).wait_for()
    console.page.wait_for_function("() => document.querySelector('main').innerText.split('inside').length === 4")

    assert not console.complaints


def test_conflicts_are_decided_whatever_the_key(visit: Visit, odd: Catalog) -> None:
    console = visit()
    console.go(*IN_ODD, "merge", source="others", into="names")
    console.see("3 conflicts")
    pressed = console.page.locator(".conflict button[aria-pressed=true]")

    assert pressed.all_inner_texts() == ["Decide later"] * 3
    console.page.get_by_role("button", name="Keep names", exact=True).first.click()  # the one for all of them
    assert set(pressed.all_inner_texts()) == {"Keep names"}
    assert not console.complaints


def test_committer_is_shown_and_the_author_beside_it_as_a_claim(visit: Visit, odd: Catalog) -> None:
    forged = CommitMeta(message="forged", committer="mallory", authors=("root",), properties={"Committed by": ("root",)})
    odd.create_branch("forged", "names")
    commit = odd.commit("forged", [Delete(ContentKey.of("toString", "inside"))], meta=forged).commit_id
    console = visit()
    console.go(*IN_ODD, "commits", "forged")
    note = console.page.locator(".commit-row").filter(has_text="forged").locator(".commit-note")
    assert note.inner_text().startswith("mallory, author root")
    console.go(*IN_ODD, "commit", "forged", f"{commit:016x}")
    facts = {
        fact.locator("dt").inner_text(): fact.locator("dd").inner_text() for fact in console.page.locator(".facts div").all()
    }

    assert facts["Committed by"] == "mallory"
    assert facts["Property Committed by"] == "root"
