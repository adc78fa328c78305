"""The metadata of commits in the JSON of Nessie's API: who, when and why.

Version 1 has one author, one sign-off and one value for each property; version 2 has lists of them. Each version writes its own names
only, and both read both; where a request has both, the lists count. Hash, committer, time and parents of a commit are the server's:
a request that has them is refused. Clients send them as null or empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from headwater.catalogs import CommitMeta, LogEntry
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater_server.nessie.reference_paths import hash_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MESSAGE: Final = "nessie-commit-message"
_AUTHORS: Final = "nessie-commit-authors"
_SIGNED_OFF_BY: Final = "nessie-commit-signedoffby"
_PROPERTY: Final = "nessie-commit-property-"
_Instant = Annotated[str, Meta(description="ISO 8601, in UTC")]
_OfServer = Annotated[str | None, Meta(description="Set by the server: leave it out")]


class CommitMetaRequest(Struct, frozen=True, rename="camel"):
    """What a client says of a commit to be made, in the names of either version."""

    message: str | None = None
    author: str | None = None
    authors: list[str] | None = None
    signed_off_by: str | None = None
    all_signed_off_by: list[str] | None = None
    properties: dict[str, str] | None = None
    all_properties: dict[str, list[str]] | None = None
    author_time: _Instant | None = None
    hash: _OfServer = None
    committer: _OfServer = None
    commit_time: _OfServer = None
    parent_commit_hashes: Annotated[list[str] | None, Meta(description="Set by the server: leave it out")] = None


class CommitMetaBody(Struct, frozen=True, rename="camel"):
    """The metadata of a commit, in version 2."""

    hash: str
    committer: str
    authors: list[str]
    all_signed_off_by: list[str]
    message: str
    commit_time: _Instant
    author_time: _Instant
    all_properties: dict[str, list[str]]
    parent_commit_hashes: Annotated[list[str], Meta(description="The commit before, and the heads that it merged")]


class CommitMetaBodyV1(Struct, frozen=True, rename="camel"):
    """The metadata of a commit, in version 1."""

    hash: str
    committer: str
    author: str | None
    signed_off_by: str | None
    message: str
    commit_time: _Instant
    author_time: _Instant
    properties: dict[str, str]


def parse_commit_meta(body: CommitMetaRequest, *, is_message_needed: bool = True) -> CommitMeta:
    """Parse what a client says of a commit to be made. The committer is left empty: it is whoever calls.

    is_message_needed  commits need one, which may be empty; merges get one
    raises        RefusedError for what only the server sets, a missing message, and a time that is none
    """
    _check_left_out(body)
    if is_message_needed and body.message is None:
        raise RefusedError("commitMeta.message is missing: say what the commit is for")
    properties = body.all_properties
    if properties is None:
        properties = {name: [value] for name, value in (body.properties or {}).items()}
    return CommitMeta(
        message=body.message or "",
        authors=_listed(body.authors, body.author),
        signed_off_by=_listed(body.all_signed_off_by, body.signed_off_by),
        properties={name: tuple(values) for name, values in properties.items()},
        author_time=None if body.author_time is None else _micros(body.author_time),
    )


def with_headers(meta: CommitMeta, headers: Mapping[str, str]) -> CommitMeta:
    """Apply the headers ``Nessie-Commit-…`` of version 2: the message wins, authors and sign-offs are added, a property is replaced.

    headers       by name in lower case; where one was sent more than once, the values are joined by ", "
    """
    properties = {
        name.removeprefix(_PROPERTY): _parts(value, ", ") for name, value in headers.items() if name.startswith(_PROPERTY)
    }
    return replace(
        meta,
        message=headers.get(_MESSAGE, "").strip() or meta.message,
        authors=(*meta.authors, *_parts(headers.get(_AUTHORS, ""), ",")),
        signed_off_by=(*meta.signed_off_by, *_parts(headers.get(_SIGNED_OFF_BY, ""), ",")),
        properties={**meta.properties, **{name: values for name, values in properties.items() if name and values}},
    )


def commit_meta_body(entry: LogEntry) -> CommitMetaBody:
    """Write the metadata of a commit as version 2 does."""
    meta = entry.meta
    return CommitMetaBody(
        hash=entry.hash,
        committer=meta.committer,
        authors=list(_authors(meta)),
        all_signed_off_by=list(meta.signed_off_by),
        message=meta.message,
        commit_time=instant_text(entry.time),
        author_time=instant_text(_author_time(entry)),
        all_properties={name: list(values) for name, values in meta.properties.items()},
        parent_commit_hashes=[hash_text(entry.parent), *map(hash_text, meta.merged)],
    )


def commit_meta_body_v1(entry: LogEntry) -> CommitMetaBodyV1:
    """Write the metadata of a commit as version 1 does: the first author, sign-off and value of each property."""
    meta = entry.meta
    return CommitMetaBodyV1(
        hash=entry.hash,
        committer=meta.committer,
        author=next(iter(_authors(meta)), None),
        signed_off_by=next(iter(meta.signed_off_by), None),
        message=meta.message,
        commit_time=instant_text(entry.time),
        author_time=instant_text(_author_time(entry)),
        properties={name: values[0] for name, values in meta.properties.items() if values},
    )


def instant_text(time: Micros) -> str:
    """A time in ISO 8601 with its microseconds, as in ``2026-01-31T12:00:00.000000Z``."""
    return (_EPOCH + time * _MICROSECOND).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _micros(text: str) -> Micros:
    try:
        return Micros((datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND)
    except (TypeError, ValueError):  # TypeError: it names no time zone
        raise RefusedError(f"commitMeta.authorTime {text!r} is no time: give one such as 2026-01-31T12:00:00.5Z") from None


def _authors(meta: CommitMeta) -> tuple[str, ...]:
    """The authors of a commit; the committer where the request named none, as Nessie has it."""
    return meta.authors or ((meta.committer,) if meta.committer else ())


def _author_time(entry: LogEntry) -> Micros:
    return entry.time if entry.meta.author_time is None else entry.meta.author_time


def _check_left_out(body: CommitMetaRequest) -> None:
    given = {
        "hash": body.hash,
        "committer": body.committer,
        "commitTime": body.commit_time,
        "parentCommitHashes": body.parent_commit_hashes,
    }
    names = [name for name, value in given.items() if value]
    if names:
        raise RefusedError(f"{' and '.join(names)} of a commit cannot be asked for: the server sets them, leave them out")


def _listed(several: Iterable[str] | None, single: str | None) -> tuple[str, ...]:
    if several is not None:
        return tuple(several)
    return () if single is None else (single,)


def _parts(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(separator)) if part)
