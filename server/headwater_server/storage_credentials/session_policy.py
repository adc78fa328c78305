"""The policy that narrows a role of S3 to the places of one table.

A policy knows wildcards and variables. A place whose name holds ``*``, ``?`` or ``$`` could be read as more than itself; AWS has a
spelling for them that other servers of S3's protocol do not know, so such places are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from headwater.errors import RefusedError
from headwater.iceberg import comparable_location, is_within, plain_location
from headwater_server.storage_credentials.storage_grant import StorageGrant

_MOST_CHARACTERS = 2048
"""What AWS takes as the policy of a session."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_PATTERNS = re.compile(r"[*?$]")
_READS = ("s3:GetObject",)
_WRITES = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def session_policy(grant: StorageGrant, *, partition: str = "aws") -> str:
    """The text of a policy in ASCII: files below the places, listings below the places, and the region of their buckets.

    partition     what names of resources begin with after ``arn:``
    raises        RefusedError for places that are not in S3, that a policy cannot name exactly, or that are too many or too long
    """
    divided = [_bucket_and_folder(place) for place in _outermost(grant.places)]
    arn = f"arn:{partition}:s3:::"
    files = [f"{arn}{bucket}/{folder}*" for bucket, folder in divided]
    buckets = sorted({bucket for bucket, _ in divided})
    statements: list[dict[str, Any]] = [
        _allow([*_READS, *(_WRITES if grant.may_write else ())], files),
        _allow(["s3:GetBucketLocation"], [arn + bucket for bucket in buckets]),
    ]
    for bucket in buckets:
        prefixes = [f"{folder}*" for of_bucket, folder in divided if of_bucket == bucket]
        listing = _allow(["s3:ListBucket"], [arn + bucket])
        # a table that has the whole bucket may be listed without any prefix, which no pattern matches
        statements.append(listing if "*" in prefixes else listing | {"Condition": {"StringLike": {"s3:prefix": prefixes}}})
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(text) > _MOST_CHARACTERS:
        raise RefusedError(
            f"a policy for {', '.join(grant.places)} has {len(text)} characters, and a token service takes {_MOST_CHARACTERS}: give the"
            " table fewer or shorter places"
        )
    return text


def _allow(actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _outermost(places: Iterable[str]) -> list[str]:
    """Places in one spelling each, without those that lie within others."""
    kept: list[str] = []
    for place in sorted(
        {comparable_location(plain_location(place)) for place in places}, key=lambda place: (len(place), place)
    ):
        if not any(is_within(place, outer) for outer in kept):
            kept.append(place)
    return kept


def _bucket_and_folder(place: str) -> tuple[str, str]:
    """The bucket of a place, and what the names of its files begin with: empty, or a folder with a slash at its end."""
    scheme, _, rest = place.partition("://")
    bucket, _, folder = rest.partition("/")
    if scheme != "s3" or not _BUCKET.fullmatch(bucket) or _PATTERNS.search(folder):
        raise RefusedError(
            f"a policy cannot name {place} exactly: it must be in a bucket of S3, without '*', '?' and '$', which mean more than"
            " themselves there"
        )
    return bucket, f"{folder}/" if folder else ""
