"""Merges and transplants as programs ask for them, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headwater.api.api_values import several
from headwater.api.catalog_values import Key, MergeInfo, content_key
from headwater.api.conflict_sides import sides_of
from headwater.catalogs import (
    Catalog,
    CommitMeta,
    ContentKey,
    ContentType,
    KeyMerge,
    MergeConflictError,
    MergeEffect,
    MergeMode,
    MergeOptions,
    MergeResult,
)
from headwater.errors import ConflictError, RefusedError
from headwater.store import id_of

_SHOWN_CONFLICTS = 100


class MergeRefusedError(ConflictError):
    """A merge or transplant has conflicts, and nothing was written. ``merge`` has what would have become of every key."""

    def __init__(self, message: str, merge: MergeInfo, details: tuple[object, ...]) -> None:
        super().__init__(message, details=details)
        self.merge = merge


def merge_options(mode: str, keys: Mapping[Key, str] | None, *, dry_run: bool, base: str | None = None) -> MergeOptions:
    """What is to be done with keys that changed on both sides; raises RefusedError for a word that is no mode."""
    modes = {content_key(key): KeyMerge(mode=_mode(each)) for key, each in (keys or {}).items()}
    return MergeOptions(mode=_mode(mode), keys=modes, base=None if base is None else id_of(base), dry_run=dry_run)


def commit_meta(
    message: str, author: str | Sequence[str], signed: str | Sequence[str], properties: Mapping[str, str | Sequence[str]] | None
) -> CommitMeta:
    """What a commit says of itself: one author or value, or several."""
    return CommitMeta(
        message=message,
        authors=several(author),
        signed_off_by=several(signed),
        properties={name: several(value) for name, value in (properties or {}).items()},
    )


def told_merge(catalog: Catalog, act: Callable[[], MergeResult]) -> MergeInfo:
    """What came of a merge; raises MergeRefusedError."""
    try:
        result = act()
    except MergeConflictError as refused:
        merge = _with_sides(catalog, refused.result)
        raise MergeRefusedError(str(refused), merge, refused.details) from refused
    return _with_sides(catalog, result) if result.conflicts else MergeInfo.of(result)


def merge_effect(effects: Mapping[ContentKey, MergeEffect] | None, key: ContentKey) -> str | None:
    """What a merge would do to a key; None where that was not looked up, or is not known."""
    return None if effects is None else effects.get(key, MergeEffect.LEFT).value


def parse_content_type(name: str) -> ContentType:
    """A type of content by its name; raises RefusedError with those that there are."""
    try:
        return ContentType[name]
    except KeyError:
        raise RefusedError(f"{name!r} is no type of content: it is one of {', '.join(ContentType.__members__)}") from None


def _mode(text: str) -> MergeMode:
    try:
        return MergeMode(text.upper())
    except ValueError:
        raise RefusedError(f"{text!r} is no mode of a merge: it is one of {', '.join(MergeMode)}") from None


def _with_sides(catalog: Catalog, result: MergeResult) -> MergeInfo:
    keys = list(dict.fromkeys(conflict.key for conflict in result.conflicts if conflict.key is not None))
    return MergeInfo.of(result, sides_of(catalog.compare_merge(result, keys[:_SHOWN_CONFLICTS])))
