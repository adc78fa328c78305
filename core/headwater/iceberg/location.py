"""Locations of object stores and file systems as text: one spelling for each place, and which place lies within which."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from headwater.errors import RefusedError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_NO_NAMES = ("", ".", "..")
_SAME_STORAGE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that name the same objects through another client."""
_WITH_HOSTS = ("hdfs", "abfs", "wasb", "wasbs", "http", "https")
"""Schemes before a host, whose case means nothing; that of a bucket does."""
_UNCLEAR = re.compile(r"[\x00-\x1f\x7f?#\\]|^\s|\s$")
"""What some readers of URLs take away, or end the path at: by ``file:///lake/orders?x`` they open ``/lake/orders``."""


def canonical_location(location: str) -> str:
    """One spelling for a location: lower-case scheme, ``file:///`` for local paths, no slash at the end.

    Inside a bucket doubled slashes are part of a name, so only local paths lose them. Nothing is percent-decoded.

    raises        RefusedError for a relative path, or one with ``.`` or ``..`` in it
    """
    folder, _, name = location.rpartition("/")
    spelled = None if name in _NO_NAMES else _spelled_folder(folder)
    return _canonical(location) if spelled is None else f"{spelled}/{name}"


@lru_cache(maxsize=4096)
def _spelled_folder(folder: str) -> str | None:
    """Normalize a folder once for all files in it: a table's files are compared by the dozen, and differ in nothing else.

    None if a name would be more than one further segment, or if there is no folder yet.
    """
    if folder.endswith("/"):
        return None
    try:
        spelled = _canonical(folder)
    except RefusedError:
        return None
    return None if spelled.endswith("/") else spelled


def _canonical(location: str) -> str:
    match = _URI.fullmatch(location)
    scheme, rest = (match[1].lower(), match[2]) if match else ("file", location)
    authority, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", *_split_absolute(rest))
    if not authority and not slash:
        raise RefusedError(f"{location!r} is not an absolute location: write for example s3://bucket/folder or file:///folder")
    segments = path.split("/")
    if {".", ".."} & set(segments):
        raise RefusedError(f"{location!r} holds a '.' or '..': write the location without them")
    if scheme == "file":
        authority = "" if authority == "localhost" else authority
        segments = [segment for segment in segments if segment]
    folders = "/".join(segments).rstrip("/")
    return f"{scheme}://{authority}/{folders}" if folders or not authority else f"{scheme}://{authority}"


def plain_location(location: str) -> str:
    """The canonical spelling of a location that every reader of URLs understands alike.

    For callers that decide by the text whether a place may be read or written, and leave that to another's driver.

    raises        RefusedError for what is no location; for control characters, ``?``, ``#``, ``\\`` or white space around it; and
                  for a folder without a name, or one that is ``.``, ``..`` or two folders once it is percent-decoded
    """
    spelled = canonical_location(location)
    folders = spelled.split("://", 1)[1].rstrip("/").split("/")[1:]
    decoded = [unquote(folder) for folder in folders]
    if _UNCLEAR.search(location) or not all(folders) or any(name in (".", "..") or "/" in name for name in decoded):
        raise RefusedError(
            f"{location!r} is read differently by different drivers: use no control characters, '?', '#', '\\', doubled slashes"
            " or percent-encoded ones"
        )
    return spelled


def same_storage(location: str) -> str:
    """The canonical spelling with one scheme for each storage, and hosts in lower case.

    raises        RefusedError for a text that is not a location
    """
    scheme, rest = canonical_location(location).split("://", 1)
    scheme = _SAME_STORAGE.get(scheme, scheme)
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.lower() if scheme in _WITH_HOSTS else authority}{slash}{path}"


def comparable_location(location: str) -> str:
    """One text for all locations that name the same objects, without a slash at the end.

    raises        RefusedError for a text that is not a location
    """
    scheme, rest = same_storage(location).split("://", 1)
    return f"{scheme}://{rest.rstrip('/')}"


def is_same_place(one: str, other: str) -> bool:
    """True if two locations name the same objects; ``s3a`` is ``s3``. A text that is no location is nowhere."""
    try:
        return comparable_location(one) == comparable_location(other)
    except RefusedError:
        return False


def is_within(inner: str, outer: str) -> bool:
    """True if ``inner`` is ``outer`` or lies below it, by whole segments: ``s3://a/bc`` is not within ``s3://a/b``."""
    folder, _, name = inner.rpartition("/")
    if name not in _NO_NAMES and _is_folder_within(folder, outer):
        return True
    return _lies_within(inner, outer)


@lru_cache(maxsize=4096)
def _is_folder_within(folder: str, outer: str) -> bool:
    """Compare folders, cached: files of one table are compared by the dozen, and lie in the same few folders."""
    return _lies_within(folder, outer)


def _lies_within(inner: str, outer: str) -> bool:
    try:
        return (comparable_location(inner) + "/").startswith(comparable_location(outer) + "/")
    except RefusedError:
        return False


def _split_absolute(rest: str) -> tuple[str, str]:
    return ("/", rest[1:]) if rest.startswith("/") else ("", "")
