"""Content committed to a branch: ids, conflicts, expected commits, and what a commit writes."""

from __future__ import annotations

import threading
from uuid import uuid4

import msgspec
import pytest

from headwater.catalogs import (
    CONTENT,
    Catalog,
    CommitMeta,
    Conflict,
    ConflictKind,
    ContentKey,
    ContentValue,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    Unmodified,
)
from headwater.catalogs.content import with_id
from headwater.errors import ConflictError, ExpiredError, FencedError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore

V1 = IcebergTable(metadata_location="s3://lake/orders/v1.json")
V2 = IcebergTable(metadata_location="s3://lake/orders/v2.json")
A, B = ContentKey.of("a"), ContentKey.of("b")


def value_of(catalog: Catalog, key: ContentKey, ref: str = "main") -> ContentValue:
    head = catalog.resolve(ref)
    value = None if head is None else head.index(CONTENT).get(key.to_index())
    assert value is not None
    return ContentValue.from_value(value)


def put(catalog: Catalog, key: ContentKey, table: IcebergTable = V1) -> ObjectId:
    done = catalog.commit("main", [Put(key, table)])
    assert done.commit_id is not None
    return done.commit_id


def test_created_content_gets_an_id_and_is_read_with_it(catalog: Catalog) -> None:
    done = catalog.commit("main", [Put(A, V1)])

    assert catalog.get_content("main", A) == with_id(V1, done.result[A])
    assert (done.changed, done.commit_id) == (True, catalog.branch("main").head)


def test_no_branch_means_the_default_branch(catalog: Catalog) -> None:
    catalog.commit(None, [Put(A, V1)])

    assert catalog.get_content(None, A) == catalog.get_content("main", A) is not None


def test_id_that_the_caller_reserved_is_given(catalog: Catalog) -> None:
    reserved = uuid4()

    assert catalog.commit("main", [Put(A, V1)], content_ids={A: reserved, B: uuid4()}).result == {A: reserved}
    assert value_of(catalog, A).content_id == reserved


def test_reserved_id_that_stands_under_another_key_conflicts(catalog: Catalog) -> None:
    taken = catalog.commit("main", [Put(A, V1)]).result[A]
    with pytest.raises(ConflictError, match=r"KEY_CONFLICT b: .*which stands at a"):
        catalog.commit("main", [Put(B, V1)], content_ids={B: taken})

    assert catalog.count("main") == 1


def test_reserved_id_is_free_again_with_its_key(catalog: Catalog) -> None:
    taken = catalog.commit("main", [Put(A, V1)]).result[A]

    assert catalog.commit("main", [Delete(A), Put(B, V1)], content_ids={B: taken}).result == {B: taken}


def test_change_keeps_the_id(catalog: Catalog) -> None:
    given = catalog.commit("main", [Put(A, V1)]).result[A]
    changed = catalog.commit("main", [Put(A, with_id(V2, given))])

    assert changed.result == {}
    assert catalog.get_content("main", A) == with_id(V2, given)


def test_put_of_the_same_makes_no_commit(catalog: Catalog, realm: RealmStore) -> None:
    given = catalog.commit("main", [Put(A, V1), Put(B, V2)]).result[A]
    rows = sum(map(len, realm.scan_objects()))
    done = catalog.commit("main", [Put(A, with_id(V1, given)), Unmodified(B)], message="nothing")

    assert (done.changed, sum(map(len, realm.scan_objects()))) == (False, rows)


def test_commit_writes_only_what_changed(catalog: Catalog, realm: RealmStore) -> None:
    done = catalog.commit("main", [Put(A, V1), Put(B, V1)])
    rows = sum(map(len, realm.scan_objects()))
    catalog.commit("main", [Put(A, with_id(V1, done.result[A])), Put(B, with_id(V2, done.result[B]))])

    assert sum(map(len, realm.scan_objects())) == rows + 2  # the content and the commit


def test_rename_writes_no_content(catalog: Catalog, realm: RealmStore) -> None:
    given = catalog.commit("main", [Put(A, V1)]).result[A]
    rows = sum(map(len, realm.scan_objects()))
    catalog.commit("main", [Put(B, with_id(V1, given)), Delete(A)])

    assert (catalog.get_content("main", A), catalog.get_content("main", B)) == (None, with_id(V1, given))
    assert sum(map(len, realm.scan_objects())) == rows + 1


def test_replaced_content_has_a_new_id(catalog: Catalog) -> None:
    old = catalog.commit("main", [Put(A, V1)]).result[A]
    new = catalog.commit("main", [Put(A, V1), Delete(A)]).result[A]

    assert new != old
    assert value_of(catalog, A).content_id == new


def test_content_goes_with_its_namespace(catalog: Catalog, first: ObjectId, sales: ContentKey, orders: ContentKey) -> None:
    with pytest.raises(ConflictError) as caught:
        catalog.commit("main", [Delete(sales)])
    catalog.commit("main", [Delete(sales), Delete(orders)])

    assert [found.kind for found in caught.value.details if isinstance(found, Conflict)] == [ConflictKind.NAMESPACE_NOT_EMPTY]
    assert catalog.count("main") == 0


def test_conflict_writes_nothing(catalog: Catalog, realm: RealmStore, first: ObjectId) -> None:
    rows = sum(map(len, realm.scan_objects()))
    with pytest.raises(ConflictError, match=r"2 conflicts: KEY_DOES_NOT_EXIST a: .*NAMESPACE_ABSENT x"):
        catalog.commit("main", [Delete(A), Put(ContentKey.of("x", "t"), V1), Put(B, V1)])

    assert (catalog.branch("main").head, sum(map(len, realm.scan_objects()))) == (first, rows)


def test_commit_from_an_older_commit_passes_without_overlap(catalog: Catalog) -> None:
    expected = put(catalog, A)
    put(catalog, B)
    catalog.commit("main", [Delete(A)], expected=expected)

    assert [str(entry.key) for entry in catalog.entries("main").entries] == ["b"]


def test_commit_from_an_older_commit_conflicts_on_overlap(catalog: Catalog) -> None:
    expected = put(catalog, A)
    catalog.commit("main", [Put(A, with_id(V2, value_of(catalog, A).content_id))])

    with pytest.raises(ConflictError, match="VALUE_DIFFERS a"):
        catalog.commit("main", [Delete(A)], expected=expected)


def test_moved_away_and_back_is_no_change(catalog: Catalog) -> None:
    expected = put(catalog, A)
    given = value_of(catalog, A).content_id
    for version in (V2, V1):
        catalog.commit("main", [Put(A, with_id(version, given))])

    assert catalog.commit("main", [Delete(A)], expected=expected).changed


def test_expected_commit_many_commits_back_is_found(catalog: Catalog) -> None:
    expected = put(catalog, A)
    for number in range(45):
        put(catalog, ContentKey.of(f"t{number}"))

    assert catalog.commit("main", [Delete(A)], expected=expected).changed


def test_expected_commit_of_another_branch_is_an_error(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    other = catalog.commit("dev", [Put(A, V1)]).commit_id
    put(catalog, B)

    with pytest.raises(NotFoundError, match="not in the history of branch 'main'"):
        catalog.commit("main", [Delete(B)], expected=other)


def test_expected_commit_that_is_gone_is_expired(catalog: Catalog, first: ObjectId) -> None:
    with pytest.raises(ExpiredError):
        catalog.commit("main", [Put(A, V1)], expected=ObjectId(99))


def test_commits_go_to_branches_only(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_tag("v1")

    with pytest.raises(RefusedError, match="is a tag"):
        catalog.commit("v1", [Put(A, V1)])
    with pytest.raises(NotFoundError, match="no branch 'nope'"):
        catalog.commit("nope", [Put(A, V1)])


def test_fenced_commit_does_nothing(catalog: Catalog) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        catalog.commit("main", [Put(A, V1)], fence=fence)
    assert catalog.count("main") == 0


def test_log_says_who_did_what(catalog: Catalog, first: ObjectId, orders: ContentKey) -> None:
    given = value_of(catalog, orders).content_id
    catalog.commit(
        "main",
        [Delete(orders), Put(A, Namespace())],
        message="drop orders",
        authors=["Ann"],
        properties={"ticket": "7"},
    )
    newest, oldest = catalog.log("main")

    assert (newest.message, newest.meta.authors, newest.meta.properties, newest.seq) == (
        "drop orders",
        ("Ann",),
        {"ticket": ("7",)},
        2,
    )
    assert {(operation.action, str(operation.key)) for operation in newest.operations} == {
        ("PUT", "a"),
        ("DELETE", "sales.orders"),
    }
    assert (oldest.id, oldest.message, oldest.operations[1].content_id) == (first, "first", given)


def test_concurrent_commits_to_different_keys_all_pass(catalog: Catalog) -> None:
    threads = [threading.Thread(target=put, args=(catalog, ContentKey.of(f"t{number}"))) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert catalog.count("main") == 6
    assert len(list(catalog.log("main"))) == 6


def test_commit_names_its_committer(catalog: Catalog) -> None:
    catalog.commit("main", [Put(A, V1)], meta=CommitMeta(message="m", authors=("Ann",), committer="svc-etl"))
    head = catalog.resolve("main")
    assert head is not None

    assert next(iter(catalog.log("main"))).meta.committer == head.commit.properties["committer"] == "svc-etl"


def test_commit_of_an_earlier_release_has_no_committer(catalog: Catalog) -> None:
    catalog.commit("main", [Put(A, V1)], meta=CommitMeta(message="m", authors=("Ann",)))
    head = catalog.resolve("main")
    assert head is not None
    odd = msgspec.structs.replace(head.commit, properties={**head.commit.properties, "committer": 7})

    assert "committer" not in head.commit.properties
    assert CommitMeta.from_commit(head.commit).committer == CommitMeta.from_commit(odd).committer == ""


def test_id_that_is_no_uuid_is_refused_by_its_value(catalog: Catalog) -> None:
    for put, ids in ((Put(A, with_id(V1, "abc")), None), (Put(A, V1), {A: 7})):  # type: ignore[type-var, arg-type]
        with pytest.raises(RefusedError, match=r"must be a UUID, not ('abc'|7)"):
            catalog.commit("main", [put], content_ids=ids)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="must be a UUID, not 'abc'"):
        catalog.find_by_id("main", ["abc"])  # type: ignore[list-item]
