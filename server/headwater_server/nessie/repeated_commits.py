"""Commits that come a second time: a proxy has sent a request twice, or its answer was lost on the way and the client tries again.

The repeat contradicts the head, which it has changed itself. Told of a conflict, Iceberg's client would delete the metadata file that it
wrote, which the table has by now. So a commit is known again by such a file: no other has its name. It is the same commit if it left
every key as the operations ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from headwater.catalogs import Content, ContentKey, ContentOperation, Delete, IcebergTable, IcebergView, Put
from headwater.catalogs.content import without_id
from headwater.commits import CommitResult
from headwater.store import id_text
from headwater_server.nessie.branch_targets import BranchTarget

_LOOKED_AT: Final = 100
"""Commits of the branch that are looked at, from its head on."""


def find_repeated(target: BranchTarget, operations: Sequence[ContentOperation]) -> CommitResult[dict[ContentKey, UUID]] | None:
    """Find the commit since the expected one that has put the same metadata files, and left all keys as asked; None where there is none."""
    wanted = {each.key: each for each in operations if isinstance(each, Put | Delete)}  # a key's Put comes after its Delete
    puts = {key: each for key, each in wanted.items() if isinstance(each, Put)}
    files = {key: place for key, put in puts.items() if (place := metadata_file(put.content)) is not None}
    if not files:
        return None
    catalog = target.session.catalog
    for change in catalog.history(next(iter(files)), target.name, within=_LOOKED_AT):
        if change.entry.id == target.expected:
            return None
        held = catalog.get_contents(id_text(change.entry.id), wanted)
        if all(_is_as_asked(each, held.get(key)) for key, each in wanted.items()):
            catalog.confirm_branch(target.name)
            created = {key: content_id for key, put in puts.items() if (content_id := _created_id(put, held.get(key)))}
            return CommitResult(result=created, changed=False, commit_id=change.entry.id, attempts=1, is_replay=True)
    return None


def _is_as_asked(operation: Put | Delete, held: Content | None) -> bool:
    """Whether a key has the content of a Put, whose id the server may have made, or nothing after a Delete."""
    if isinstance(operation, Delete) or held is None:
        return isinstance(operation, Delete) and held is None
    wanted = operation.content
    if wanted.id not in (None, held.id):
        return False
    # The server has completed what it stores of a table by the file, which says all else.
    return metadata_file(held) == metadata_file(wanted) if metadata_file(wanted) else without_id(held) == without_id(wanted)


def metadata_file(content: Content) -> str | None:
    """The metadata file of a table or view."""
    return content.metadata_location if isinstance(content, IcebergTable | IcebergView) else None


def _created_id(put: Put, held: Content | None) -> UUID | None:
    return None if put.content.id is not None or held is None else held.id
