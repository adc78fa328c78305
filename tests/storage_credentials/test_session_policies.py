"""The policy that narrows a role to a table's places: what it names, and what it must never name."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

from headwater.errors import RefusedError
from headwater_server.storage_credentials import StorageGrant, session_policy

READS = {"s3:GetObject", "s3:GetBucketLocation", "s3:ListBucket"}
WRITES = {"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}


def statements(*places: str, may_write: bool = False, partition: str = "aws") -> list[dict[str, Any]]:
    policy = json.loads(session_policy(StorageGrant(places, may_write, "ann@acme"), partition=partition))
    assert policy["Version"] == "2012-10-17"
    return list(policy["Statement"])


def reaches(policy: list[dict[str, Any]], location: str) -> bool:
    """Whether a policy allows to read a file, as AWS compares it."""
    arn = location.replace("s3://", "arn:aws:s3:::")
    return any(
        fnmatchcase(arn, resource) for each in policy if "s3:GetObject" in each["Action"] for resource in each["Resource"]
    )


def lists(policy: list[dict[str, Any]], prefix: str | None) -> bool:
    """Whether a policy allows to list a prefix of the bucket."""
    conditions = [each.get("Condition") for each in policy if "s3:ListBucket" in each["Action"]]
    return any(
        condition is None
        or (prefix is not None and any(fnmatchcase(prefix, known) for known in condition["StringLike"]["s3:prefix"]))
        for condition in conditions
    )


def actions(policy: list[dict[str, Any]]) -> set[str]:
    assert all(each["Effect"] == "Allow" for each in policy)
    return {action for each in policy for action in each["Action"]}


def test_reader_gets_no_action_that_writes() -> None:
    assert actions(statements("s3://lake/a/t")) == READS
    assert actions(statements("s3://lake/a/t", may_write=True)) == READS | WRITES


@pytest.mark.parametrize("place", ["s3://lake/a/t", "s3a://lake/a/t/", "S3://lake/a/t"])
def test_policy_names_what_lies_below_a_place(place: str) -> None:
    policy = statements(place)

    assert reaches(policy, "s3://lake/a/t/data/x.parquet") and lists(policy, "a/t/") and lists(policy, "a/t/data/")


@pytest.mark.parametrize("neighbor", ["a/t2/x", "a/t.bak/x", "a/t", "a/x", "b/a/t/x", "a//t/x", "A/t/x"])
def test_policy_names_no_neighbor(neighbor: str) -> None:
    policy = statements("s3://lake/a/t", may_write=True)

    assert not reaches(policy, f"s3://lake/{neighbor}") and not lists(policy, neighbor)
    assert not reaches(policy, "s3://lake2/a/t/x") and not lists(policy, None) and not lists(policy, "")


def test_policy_names_all_places_of_a_table() -> None:
    policy = statements("s3://lake/a/t", "s3://lake/a/t/data", "s3://lake/objects/t", "s3://pond/t")

    assert policy[0]["Resource"] == [
        "arn:aws:s3:::pond/t/*",
        "arn:aws:s3:::lake/a/t/*",
        "arn:aws:s3:::lake/objects/t/*",
    ]
    assert lists(policy, "objects/t/") and not lists(policy, "objects/")


def test_listing_of_one_bucket_says_nothing_of_another() -> None:
    listings = [each for each in statements("s3://lake/a", "s3://pond/b") if each["Action"] == ["s3:ListBucket"]]

    assert [(each["Resource"], each["Condition"]["StringLike"]["s3:prefix"]) for each in listings] == [
        (["arn:aws:s3:::lake"], ["a/*"]),
        (["arn:aws:s3:::pond"], ["b/*"]),
    ]


def test_table_that_has_a_bucket_may_be_listed_whole() -> None:
    policy = statements("s3://lake")

    assert reaches(policy, "s3://lake/x") and not reaches(policy, "s3://lake2/x") and lists(policy, None)


@pytest.mark.parametrize("partition", ["aws-us-gov", "aws-cn"])
def test_names_begin_with_the_part_of_the_cloud(partition: str) -> None:
    names = [name for each in statements("s3://lake/t", partition=partition) for name in each["Resource"]]

    assert {name.split(":::")[0] for name in names} == {f"arn:{partition}:s3"}


@pytest.mark.parametrize(
    "place",
    [
        "s3://lake/a/*",
        "s3://lake/a/t*/x",
        "s3://lake/a?/t",
        "s3://lake/${aws:username}",
        "s3://lake/$",
        "s3://*/t",
        "s3://la:ke/t",
        "s3://arn:aws:s3:::lake/t",
        "s3://user@lake/t",
        "s3://lake/a/../t",
        "s3://lake/a//t",
        "s3://lake/a/%2e%2e/t",
        "s3://lake/a%2Ft",
        "s3://",
        "file:///lake/t",
        "gs://lake/t",
        "lake/t",
    ],
)
def test_place_that_means_more_than_itself_is_refused(place: str) -> None:
    with pytest.raises(RefusedError):
        statements("s3://lake/a/u", place)


@pytest.mark.parametrize("name", ["with space", "a[b]", 'quote"d', "50%", "a{b}", "Zürich", "日本", "a'b", "a+b&c=d"])
def test_odd_name_is_named_as_it_is(name: str) -> None:
    text = session_policy(StorageGrant((f"s3://lake/{name}",), may_write=False, who="ann@acme"))

    assert text.isascii()
    assert json.loads(text)["Statement"][0]["Resource"] == [f"arn:aws:s3:::lake/{name}/*"]


def test_policy_that_no_service_takes_is_refused() -> None:
    assert len(session_policy(StorageGrant((f"s3://lake/{'t' * 700}",), may_write=True, who="ann@acme"))) < 2048
    with pytest.raises(RefusedError, match="fewer or shorter places"):
        statements(f"s3://lake/{'t' * 900}", may_write=True)
