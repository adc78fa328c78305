"""pynessie against a server that asks who calls."""

from __future__ import annotations

import pytest
import requests
from client_texts import SECONDS

from guarded_realms import GuardedLake
from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry
from pynessie_env import NessieFault, Pynessie

pytestmark = pytest.mark.long

ORDERS = "ContentKey(['sales', 'orders'])"
HEAD = "client.get_reference('main').hash_"


def root_token(lake: GuardedLake) -> str:
    client_id, _, secret = lake.root.partition(":")
    fields = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    return str(requests.post(lake.token_uri, data=fields, timeout=SECONDS).json()["access_token"])


@pytest.fixture
def reader(any_pynessie: Pynessie, guarded_lake: GuardedLake) -> Pynessie:
    """pynessie, which shows a token of the reader of one namespace."""
    return any_pynessie.at(guarded_lake.url, guarded_lake.warehouse, token=guarded_lake.token())


@pytest.fixture
def root(any_pynessie: Pynessie, revocable_lake: GuardedLake) -> Pynessie:
    """pynessie, which shows a token of root, for a catalog that may be changed."""
    return any_pynessie.at(revocable_lake.url, revocable_lake.warehouse, token=root_token(revocable_lake))


def test_reader_of_a_namespace_sees_it_alone(reader: Pynessie) -> None:
    assert reader.run("content", "list") == "NAMESPACE:\n\tsales\nICEBERG_TABLE:\n\tsales.orders\n\n"
    assert "Iceberg table:" in reader.run("content", "view", "sales.orders")
    assert "CONTENT_NOT_FOUND" in reader.fail("content", "view", "hidden.orders")
    assert reader.run("branch").strip() == "" and "REFERENCE_NOT_FOUND" in reader.fail("content", "list", "-r", "dev")


@pytest.mark.parametrize(
    "program",
    [
        f"client.commit('main', {HEAD}, 'x', None, Delete({ORDERS}))",
        f"client.commit('main', {HEAD}, 'x', None, Put(ContentKey(['more']), Namespace(None, ['more'])))",
        f"client.create_branch('dev', 'main', {HEAD})",
        f"client.create_tag('v1', 'main', {HEAD})",
    ],
)
def test_reader_changes_nothing(reader: Pynessie, guarded_lake: GuardedLake, program: str) -> None:
    before = guarded_lake.commits()
    with pytest.raises(NessieFault) as fault:
        reader.execute(program)

    assert (fault.value.kind, fault.value.code, fault.value.status) == ("NessiePermissionException", "FORBIDDEN", 403)
    assert "this needs " in fault.value.text and guarded_lake.commits() == before


def test_caller_without_a_token_is_told_so(any_pynessie: Pynessie, guarded_lake: GuardedLake) -> None:
    for token in ("", "nonsense"):
        with pytest.raises(NessieFault) as fault:
            any_pynessie.at(guarded_lake.url, guarded_lake.warehouse, token=token).execute("client.list_references()")
        assert (fault.value.kind, fault.value.status) == ("NessieUnauthorizedException", 401)


def test_committer_is_the_principal(root: Pynessie, revocable_lake: GuardedLake) -> None:
    rows = RealmRegistry(revocable_lake.realm.store).open_realm(revocable_lake.realm.id)
    catalog = Catalogs(rows).open_catalog(revocable_lake.name)
    root.run("branch", "dev")
    root.execute(f"client.commit('dev', {HEAD}, 'drop it', 'ann', Delete({ORDERS}))")
    [dropped, *_] = root.run_json("log", "dev")
    root.run("merge", "dev", "-b", "main", "--force")

    assert (dropped["committer"], dropped["author"], dropped["message"]) == ("root", "ann", "drop it")
    assert [commit.meta.committer for commit in catalog.log()][:1] == ["root"]
