"""Ways around a grant that are refused: by renames, references, identities, places and repeated requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from guarded_operations import VERSION, fill_sales

from asgi_client import AsgiAnswer
from guarded_server import SCHEMA, GuardedServer, Guest, held, updates
from headwater.access import Privilege
from headwater.catalogs import Catalog, Catalogs, ContentKey, ContentType
from headwater.store import id_text

P = Privilege
OWN = (
    held(P.TABLE_FULL_METADATA, "mine"),
    held(P.TABLE_WRITE_DATA, "mine"),
    held(P.VIEW_FULL_METADATA, "mine"),
    held(P.NAMESPACE_FULL_METADATA, "mine"),
)
"""Everything in one namespace, on the default branch."""
ORDERS, MINE = "namespaces/sales/tables/orders", "namespaces/mine/tables"
CREATED = {"type": "assert-create"}


@dataclass
class Attack:
    """Somebody with every right in ``mine``, and a table ``sales.orders`` and a view ``sales.totals`` of somebody else."""

    server: GuardedServer
    root: Guest
    mallory: Guest
    orders: Mapping[str, Any]
    totals: Mapping[str, Any]

    @property
    def lake(self) -> Catalog:
        return Catalogs(self.server.realms.open_realm("acme")).open_catalog("lake")

    @property
    def uuid(self) -> str:
        uuid: str = self.orders["metadata"]["table-uuid"]
        return uuid

    def make_own(self, name: str = "own") -> Mapping[str, Any]:
        answer = self.mallory.post(MINE, {"name": name, "schema": SCHEMA})
        assert answer.status == 200, answer.content
        loaded: Mapping[str, Any] = answer.data
        return loaded

    def assert_whole(self) -> None:
        """Check that the table stands where it stood, as it was."""
        answer = self.root.get(ORDERS)
        assert answer.status == 200 and answer.data["metadata"] == self.orders["metadata"]


@pytest.fixture
def attack(server: GuardedServer) -> Attack:
    orders, totals = fill_sales(server)
    root = server.guest("root")
    root.post("namespaces", {"namespace": ["mine"]})
    server.make_principal("mallory", *OWN)
    return Attack(server, root, server.guest("mallory"), orders, totals)


def rename(source: tuple[str, ...], target: tuple[str, ...]) -> dict[str, Any]:
    return {
        side: {"namespace": list(path[:-1]), "name": path[-1]} for side, path in (("source", source), ("destination", target))
    }


def creation(*changes: Mapping[str, Any], uuid: str = "", location: str = "") -> dict[str, Any]:
    """The body of a commit that creates a table, with the uuid and in the place that its author chooses."""
    made = [
        {"action": "assign-uuid", "uuid": uuid or str(uuid4())},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]
    return {"requirements": [CREATED], "updates": [*made, *changes]}


def appended(loaded: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": loaded["metadata"]["last-updated-ms"] + 1,
        "manifest-list": f"{loaded['metadata']['location']}/metadata/snap-7.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return updates(
        loaded,
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    )


def assert_nothing_told(answer: AsgiAnswer, *names: str, allowed: frozenset[int] = frozenset({403, 404})) -> None:
    """Check that a request was refused, in words that name none of these."""
    assert answer.status in allowed, answer.content
    assert not [name for name in names if name in answer.content.decode()], answer.content


def test_table_is_taken_by_no_rename(attack: Attack) -> None:
    answer = attack.mallory.post("tables/rename", rename(("sales", "orders"), ("mine", "orders")))

    assert answer.error == (404, "NoSuchTableException")
    attack.assert_whole()


@pytest.mark.parametrize("privilege", [P.TABLE_DROP, P.TABLE_READ_DATA, P.TABLE_WRITE_DATA, P.TABLE_CREATE])
def test_half_of_a_renames_rights_takes_no_table(attack: Attack, privilege: Privilege) -> None:
    attack.server.grant("mallory", held(privilege, "sales"))
    answer = attack.mallory.post("tables/rename", rename(("sales", "orders"), ("mine", "orders")))

    assert answer.status == (404 if privilege is P.TABLE_CREATE else 403)
    attack.assert_whole()


def test_table_is_pushed_into_no_namespace(attack: Attack) -> None:
    attack.make_own()
    answer = attack.mallory.post("tables/rename", rename(("mine", "own"), ("sales", "own")))

    assert answer.error == (404, "NoSuchNamespaceException")
    assert attack.root.names("namespaces/sales/tables") == ["orders"]


def test_view_is_taken_by_no_rename(attack: Attack) -> None:
    answer = attack.mallory.post("views/rename", rename(("sales", "totals"), ("mine", "totals")))

    assert answer.error == (404, "NoSuchViewException")


@pytest.mark.parametrize("kind", ["tables", "views"])
def test_rename_takes_nothing_as_another_kind(attack: Attack, kind: str) -> None:
    name = {"tables": "totals", "views": "orders"}[kind]
    for source in (("sales", name), ("sales",), ("sales", "void")):
        if len(source) > 1:
            assert attack.mallory.post(f"{kind}/rename", rename(source, ("mine", "x"))).status == 404
    attack.assert_whole()


REFERENCES = ("dev", "v1", "{hash}", "main@{hash}", "main~1", "main^1", "main*2100-01-01T00:00:00Z", "@{hash}", "dev@{hash}")


@pytest.mark.parametrize("reference", REFERENCES)
def test_right_on_the_default_branch_opens_no_other(attack: Attack, reference: str) -> None:
    attack.server.grant("mallory", held(P.TABLE_WRITE_DATA, "sales"), held(P.NAMESPACE_LIST))
    head = attack.lake.resolve(None)
    assert head is not None
    attack.lake.create_branch("dev")
    attack.lake.create_tag("v1")
    guest = attack.mallory.at("acme~lake~" + reference.format(hash=id_text(head.id)))
    assert attack.mallory.get(ORDERS).status == 200

    for answer in (
        guest.get(ORDERS),
        guest.get("namespaces"),
        guest.post(ORDERS, updates(attack.orders)),
        guest.delete(ORDERS),
    ):
        assert answer.status in (403, 404) and b"metadata" not in answer.content, answer.content
    assert attack.mallory.config(f"acme/lake@{reference.format(hash=id_text(head.id))}").status in (403, 404)


def test_dropped_table_is_read_by_no_bare_hash(attack: Attack) -> None:
    everywhere = held(P.TABLE_READ_DATA, "sales", references="*")
    attack.server.grant("mallory", everywhere)
    head = attack.lake.resolve(None)
    assert head is not None
    assert attack.root.delete(ORDERS).status == 204
    past = [attack.mallory.at(f"acme~lake~{text}") for text in (id_text(head.id), f"main@{id_text(head.id)}", "main~1")]

    assert {guest.get(ORDERS).status for guest in past} == {403}
    attack.server.grant("mallory", held(P.REFERENCE_READ_HISTORY))
    assert {guest.get(ORDERS).status for guest in past} == {200}


def test_branch_of_another_is_not_written(attack: Attack) -> None:
    attack.lake.create_branch("dev")
    attack.server.grant("mallory", held(P.TABLE_READ_DATA, "sales", references="*"), held(P.TABLE_DROP, "sales"))
    dev = attack.mallory.at("acme~lake~dev")

    assert dev.get(ORDERS).status == 200
    assert dev.delete(ORDERS).error == (403, "ForbiddenException")


def test_table_made_anew_keeps_no_right_by_content_id(attack: Attack) -> None:
    own = attack.make_own()
    attack.server.revoke("mallory", *OWN)
    content_id = next(e.content_id for e in attack.lake.entries(None).entries if str(e.key) == "mine.own")
    attack.server.grant("mallory", held(P.TABLE_LIST, "x"))
    attack.server.grant(
        "mallory",
        *(type(OWN[0])(privilege=p, on="table", content_id=content_id) for p in (P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA)),
    )
    assert attack.mallory.get(f"{MINE}/own").status == 200
    assert attack.root.delete(f"{MINE}/own").status == 204
    made = attack.root.post(MINE, {"name": "own", "schema": SCHEMA})

    assert made.data["metadata"]["table-uuid"] != own["metadata"]["table-uuid"]
    assert attack.mallory.get(f"{MINE}/own").status == 404
    back = {"name": "back", "metadata-location": own["metadata-location"]}
    assert attack.mallory.post("namespaces/mine/register", back).status in (403, 404)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_metadata_of_another_is_not_registered(attack: Attack, is_dropped: bool) -> None:
    if is_dropped:
        assert attack.root.delete(ORDERS).status == 204
    wish = {"name": "copy", "metadata-location": attack.orders["metadata-location"]}
    for body in (wish, {**wish, "overwrite": True}):
        answer = attack.mallory.post("namespaces/mine/register", body)

        assert_nothing_told(answer, "sales.orders", "columns", '"fields"', allowed=frozenset({400, 403}))
    assert attack.mallory.names(MINE) == []


def edited_copy(attack: Attack, place: str, **changes: Any) -> str:
    """A metadata file in a place, like that of the table of another; returns its location."""
    document = json.loads(json.dumps(attack.orders["metadata"])) | {"metadata-log": []} | changes
    file = Path(place.removeprefix("file://")) / "metadata" / "00000-00000000-0000-4000-8000-000000000000.metadata.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))
    return file.as_uri()


@pytest.mark.parametrize("is_dropped", [False, True])
def test_edited_copy_with_the_uuid_of_another_is_not_registered(attack: Attack, is_dropped: bool) -> None:
    if is_dropped:
        assert attack.root.delete(ORDERS).status == 204
    place = f"{attack.server.base_location}/acme/lake/mine/copy"
    wish = {"name": "copy", "metadata-location": edited_copy(attack, place, location=place)}
    answer = attack.mallory.post("namespaces/mine/register", wish)

    assert_nothing_told(answer, "sales.orders", "orders of", allowed=frozenset({400, 403}))
    assert attack.mallory.names(MINE) == []


def test_edited_copy_in_the_place_of_another_is_not_registered(attack: Attack) -> None:
    place = f"{attack.server.base_location}/acme/lake/mine/copy"
    copy = edited_copy(attack, place, **{"table-uuid": str(uuid4())})
    answer = attack.mallory.post("namespaces/mine/register", {"name": "copy", "metadata-location": copy})

    assert_nothing_told(answer, "sales.orders", allowed=frozenset({400, 403}))
    assert attack.mallory.names(MINE) == []


def test_register_over_a_table_needs_the_right_to_drop_it(attack: Attack) -> None:
    own = attack.make_own()
    assert attack.mallory.delete(f"{MINE}/own").status == 204
    attack.server.grant("mallory", held(P.TABLE_CREATE, "sales"))
    wish = {"name": "orders", "metadata-location": own["metadata-location"], "overwrite": True}
    answer = attack.mallory.post("namespaces/sales/register", wish)

    assert answer.status in (403, 404)
    attack.assert_whole()


@pytest.mark.parametrize("is_dropped", [False, True])
def test_staged_table_takes_no_uuid_of_another(attack: Attack, is_dropped: bool) -> None:
    if is_dropped:
        assert attack.root.delete(ORDERS).status == 204
    place = f"{attack.server.base_location}/acme/lake/mine/copy"
    answer = attack.mallory.post(f"{MINE}/copy", creation(uuid=attack.uuid, location=place))

    assert_nothing_told(answer, "sales.orders", allowed=frozenset({400, 403}))
    assert attack.mallory.names(MINE) == []


@pytest.mark.parametrize("below", ["", "/data", "/metadata/deep", "/..", "/../.."])
def test_place_of_another_is_given_to_no_table(attack: Attack, below: str) -> None:
    place = attack.orders["metadata"]["location"] + below
    own = attack.make_own()
    asked = [
        attack.mallory.post(MINE, {"name": "new", "schema": SCHEMA, "location": place}),
        attack.mallory.post(MINE, {"name": "new", "schema": SCHEMA, "location": place, "stage-create": True}),
        attack.mallory.post(MINE, {"name": "new", "schema": SCHEMA, "properties": {"write.data.path": place}}),
        attack.mallory.post(f"{MINE}/new", creation(location=place)),
        attack.mallory.post(f"{MINE}/own", updates(own, {"action": "set-location", "location": place})),
        attack.mallory.post(
            f"{MINE}/own", updates(own, {"action": "set-properties", "updates": {"write.metadata.path": place}})
        ),
        attack.mallory.post(
            "namespaces/mine/views",
            {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}, "location": place},
        ),
    ]

    for answer in asked:
        assert_nothing_told(answer, "sales.orders", allowed=frozenset({400}))
    assert attack.mallory.names(MINE) == ["own"]


def test_place_of_a_namespace_leads_into_no_table(attack: Attack) -> None:
    place = attack.orders["metadata"]["location"]
    attack.mallory.post("namespaces/mine/properties", {"updates": {"location": place}})
    answer = attack.mallory.post(MINE, {"name": "new", "schema": SCHEMA})

    assert_nothing_told(answer, "sales.orders", allowed=frozenset({400}))


def test_snapshot_names_no_file_of_another(attack: Attack) -> None:
    own = attack.make_own()
    stolen = appended(own)
    stolen["updates"][0]["snapshot"]["manifest-list"] = attack.orders["metadata"]["location"] + "/metadata/snap-1.avro"

    assert attack.mallory.post(f"{MINE}/own", stolen).error == (400, "BadRequestException")


def test_second_table_of_a_transaction_is_not_smuggled(attack: Attack) -> None:
    owned = {"action": "set-properties", "updates": {"owner": "mallory"}}
    own = attack.make_own()
    changes = [
        {"identifier": {"namespace": ["mine"], "name": "own"}, **updates(own, owned)},
        {"identifier": {"namespace": ["sales"], "name": "orders"}, **updates(attack.orders, owned)},
    ]
    for ordered in (changes, changes[::-1]):
        assert attack.mallory.post("transactions/commit", {"table-changes": ordered}).error == (404, "NoSuchTableException")
    assert "owner" not in attack.mallory.get(f"{MINE}/own").data["metadata"]["properties"]
    attack.assert_whole()


def test_identifier_in_a_body_does_not_replace_the_path(attack: Attack) -> None:
    own = attack.make_own()
    body = updates(own, {"action": "set-properties", "updates": {"owner": "mallory"}})
    body["identifier"] = {"namespace": ["sales"], "name": "orders"}
    assert attack.mallory.post(f"{MINE}/own", body).status == 200

    attack.assert_whole()


def test_right_to_change_metadata_changes_no_data(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.TABLE_FULL_METADATA, "sales"))

    assert attack.mallory.post(ORDERS, appended(attack.orders)).error == (403, "ForbiddenException")
    assert attack.mallory.delete(f"{ORDERS}?purgeRequested=true").error == (403, "ForbiddenException")
    attack.assert_whole()


def test_namespace_above_is_not_made_on_the_way(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.NAMESPACE_CREATE, "new", "below"))
    answer = attack.mallory.post("namespaces", {"namespace": ["new", "below", "deep"]})

    assert answer.error == (403, "ForbiddenException")
    assert attack.root.names("namespaces") == ["mine", "sales"]


def test_drop_of_a_namespace_names_nothing_hidden_in_it(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.NAMESPACE_DROP, "sales"))
    answer = attack.mallory.delete("namespaces/sales")

    assert answer.error == (409, "NamespaceNotEmptyException")
    assert "orders" not in answer.message and "totals" not in answer.message and "void" not in answer.message
    assert "orders" in attack.root.delete("namespaces/sales").message


KEY = "01890a5d-ac96-774b-bcce-b302099a8057"


def test_repeat_by_another_is_not_told_what_was_answered(attack: Attack) -> None:
    body = {"name": "new", "schema": SCHEMA}
    assert attack.root.post("namespaces/sales/tables", body, idempotency_key=KEY).status == 200

    assert attack.mallory.post("namespaces/sales/tables", body, idempotency_key=KEY).error == (404, "NoSuchNamespaceException")


def test_key_of_a_request_is_poisoned_by_nobody_else(attack: Attack) -> None:
    body = {"name": "new", "schema": SCHEMA}
    for wish in (body, {**body, "name": "another"}):
        assert attack.mallory.post("namespaces/sales/tables", wish, idempotency_key=KEY).status == 404

    assert attack.root.post("namespaces/sales/tables", body, idempotency_key=KEY).status == 200


def test_uuid_of_a_creation_is_not_drawn_again_by_another(attack: Attack) -> None:
    body = {"name": "new", "schema": SCHEMA}
    attack.server.grant("mallory", held(P.TABLE_CREATE, "sales"))
    first = attack.root.post("namespaces/sales/tables", body, idempotency_key=KEY)
    assert attack.root.delete("namespaces/sales/tables/new").status == 204
    second = attack.mallory.post("namespaces/sales/tables", body, idempotency_key=KEY)

    uuids = {UUID(answer.data["metadata"]["table-uuid"]) for answer in (first, second)}
    assert len(uuids) == 2


def test_repeat_of_a_creation_shows_no_later_version(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.TABLE_CREATE, "sales"))
    body = {"name": "new", "schema": SCHEMA}
    made = attack.mallory.post("namespaces/sales/tables", body, idempotency_key=KEY)
    assert made.status == 200
    secret = updates(made.data, {"action": "set-properties", "updates": {"comment": "a-later-secret"}})
    assert attack.root.post("namespaces/sales/tables/new", secret).status == 200
    again = attack.mallory.post("namespaces/sales/tables", body, idempotency_key=KEY)

    assert attack.mallory.get("namespaces/sales/tables/new").status == 404
    assert "a-later-secret" not in again.content.decode()


def test_creation_that_happened_shows_no_table_of_another(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.TABLE_CREATE, "sales"))
    guess = creation(uuid=attack.uuid, location=attack.orders["metadata"]["location"])
    for identifiers in ("", "transaction"):
        change = {"identifier": {"namespace": ["sales"], "name": "orders"}, **guess}
        answer = (
            attack.mallory.post("transactions/commit", {"table-changes": [change]})
            if identifiers
            else attack.mallory.post(ORDERS, guess)
        )
        assert answer.status not in (200, 204), "whoever guesses the uuid of a table is given its metadata"
        assert b"metadata-location" not in answer.content


def test_view_is_changed_by_no_right_on_tables(attack: Attack) -> None:
    attack.server.grant("mallory", held(P.TABLE_FULL_METADATA, "sales"), held(P.TABLE_WRITE_DATA, "sales"))
    path = "namespaces/sales/views/totals"

    assert attack.mallory.get(path).status == 404
    assert attack.mallory.delete(path).status == 404
    assert attack.mallory.delete("namespaces/sales/tables/totals").status == 404
    assert attack.root.get(path).status == 200


def test_page_token_of_another_reference_or_caller_is_refused(server: GuardedServer) -> None:
    for number in range(3):
        server.make_table("sales", f"t{number}")
    grants = (held(Privilege.TABLE_READ_DATA, "sales", references="*"), held(Privilege.NAMESPACE_LIST, references="*"))
    server.make_principal("alice", *grants)
    server.make_principal("bob", *grants)
    server.catalog().create_branch("dev")
    alice = server.guest("alice")
    token = alice.get("namespaces/sales/tables", pageSize="1").data["next-page-token"]

    assert alice.get("namespaces/sales/tables", pageSize="1", pageToken=token).status == 200
    assert alice.at("acme~lake~dev").get("namespaces/sales/tables", pageToken=token).status == 400
    assert server.guest("bob").get("namespaces/sales/tables", pageToken=token).status == 400


def test_page_token_is_not_made_by_its_sender(server: GuardedServer) -> None:
    """A token that names an old commit would list what a reference held, without the right to read history."""
    for number in range(3):
        server.make_table("sales", f"t{number}")
    server.make_principal("alice", held(Privilege.TABLE_READ_DATA, "sales"))
    alice, catalog = server.guest("alice"), server.catalog()
    listed = catalog.children(None, ContentKey.of("sales"), content_types=[ContentType.ICEBERG_TABLE], limit=1)
    assert listed.next_token is not None
    server.guest("root").delete("namespaces/sales/tables/t2")
    given = alice.get("namespaces/sales/tables", pageSize="1").data["next-page-token"]

    for forged in (listed.next_token, given[:24] + listed.next_token, "A" * 24 + listed.next_token):
        assert alice.get("namespaces/sales/tables", pageToken=forged).error == (400, "BadRequestException")
