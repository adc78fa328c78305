"""Catalogs: what their lists say against what is there."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.catalogs import CATALOGS, CatalogDefinition, Catalogs, CatalogState
from headwater.commits import read_head
from headwater.errors import HeadwaterError
from headwater.index import Value
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.store import ObjectId

__all__ = ["check_catalogs"]

_BY_NAME, _BY_ID = "by-name", "by-id"
_PARTS = ("refs", "roles", "grants")
_MEND = "apply its manifest again, or run `headwater fsck --repair`: it goes on where it stopped"


def check_catalogs(sight: Sight) -> Iterator[Finding]:
    """Every live catalog has its own references and its default branch, and stands in both lists alike."""
    try:
        yield from _check_lists(sight)
        for definition in Catalogs(sight.rows).list():
            yield from _check_catalog(sight, definition)
    except HeadwaterError as fault:
        if not sight.list_fault and not sight.lost:
            yield sight.finding(Code.CATALOG_INCOMPLETE, CATALOGS, str(fault), _MEND)


def _check_catalog(sight: Sight, definition: CatalogDefinition) -> Iterator[Finding]:
    own = [f"cat/{definition.id}/{part}" for part in _PARTS]
    branch = f"cat/{definition.id}/heads/{definition.default_branch}"
    rows = sight.rows.find_rows([*own, branch])
    missing = [name for name, row in zip(own, rows, strict=False) if row is None or row.deleted is not None]
    if missing:
        text = f"the catalog has no {', no '.join(name.rpartition('/')[2] for name in missing)}"
        yield sight.finding(Code.CATALOG_INCOMPLETE, definition.name, text, _MEND)
    if rows[-1] is None or rows[-1].deleted is not None:
        text = f"the catalog has no default branch {definition.default_branch!r}"
        yield sight.finding(Code.CATALOG_INCOMPLETE, definition.name, text, _MEND)


def _check_lists(sight: Sight) -> Iterator[Finding]:
    """The list by name has the live ones of the list by id, and no other."""
    at = read_head(sight.rows, CATALOGS, fresh=True)
    if at is None:
        return
    by_name, by_id = dict(at.index(_BY_NAME).range()), dict(at.index(_BY_ID).range())
    targets = {value.object_id for value in (*by_name.values(), *by_id.values()) if value.object_id is not None}
    wanted = sorted(targets)
    found = dict(zip(wanted, sight.rows.read_many(wanted, CatalogDefinition), strict=True))
    for key, value in by_name.items():
        definition = _of(value, found)
        other = None if definition is None else _of(by_id.get(definition.id.encode()), found)
        if definition is None or definition.name.encode() != key or other != definition:
            yield _mislisted(sight, key, f"the list by name has {key.decode()!r}, which the list by id does not have so")
    for key, value in by_id.items():
        definition = _of(value, found)
        is_live = definition is not None and definition.state is CatalogState.ACTIVE
        if definition is None or (is_live and definition.name.encode() not in by_name):
            yield _mislisted(sight, key, f"the list by id has {key.decode()}, which the list by name lacks")


def _of(value: Value | None, found: dict[ObjectId, CatalogDefinition | None]) -> CatalogDefinition | None:
    return None if value is None or value.object_id is None else found.get(value.object_id)


def _mislisted(sight: Sight, key: bytes, text: str) -> Finding:
    return sight.finding(
        Code.CATALOG_MISLISTED,
        key.decode(),
        text,
        f"restore the reference {CATALOGS!r} to a commit before that; `headwater realm restore` does it",
    )
