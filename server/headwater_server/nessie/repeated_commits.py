"""Commits that come a second time: a proxy has sent a request twice, or its answer was lost on the way and the client tries again.

The repeat contradicts the head, which it has changed itself. Told of a conflict, Iceberg's client would delete the metadata file that it
wrote, which the table has by now. So a commit is known again by such a file: no other has its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from headwater.catalogs import Content, ContentKey, ContentOperation, IcebergTable, IcebergView, Put
from headwater.commits import CommitResult
from headwater.store import id_text
from headwater_server.nessie.branch_targets import BranchTarget

_LOOKED_AT: Final = 100
"""Commits of the branch that are looked at, from its head on."""


def find_repeated(target: BranchTarget, operations: Sequence[ContentOperation]) -> CommitResult[dict[ContentKey, UUID]] | None:
    """Find the commit that has put the same metadata files at the same keys since the expected one; None where there is none."""
    puts = {each.key: each for each in operations if isinstance(each, Put)}
    files = {key: place for key, put in puts.items() if (place := metadata_file(put.content)) is not None}
    if not files:
        return None
    catalog = target.session.catalog
    for change in catalog.history(next(iter(files)), target.name, within=_LOOKED_AT):
        if change.entry.id == target.expected:
            return None
        held = catalog.get_contents(id_text(change.entry.id), puts)
        if all(key in held and metadata_file(held[key]) == place for key, place in files.items()):
            catalog.confirm_branch(target.name)
            created = {key: content_id for key, put in puts.items() if (content_id := _created_id(put, held.get(key)))}
            return CommitResult(result=created, changed=False, commit_id=change.entry.id, attempts=1, is_replay=True)
    return None


def metadata_file(content: Content) -> str | None:
    """The metadata file of a table or view."""
    return content.metadata_location if isinstance(content, IcebergTable | IcebergView) else None


def _created_id(put: Put, held: Content | None) -> UUID | None:
    return None if put.content.id is not None or held is None else held.id
