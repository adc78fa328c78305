"""Versions without what expired, many in one commit. Their files are written first, and removed only where it certainly did not happen.

    write      the metadata file of each version
    commit     on condition that each table is as it was when it was decided; tables that another commit changed are left out, and their
               files removed, and the others are committed without them

A table's version names its uuid, its refs and their snapshots: the condition on the version is one on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import HEADWATER, Catalog, CommitMeta, Conflict, ContentKey, IcebergTable, Put
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, UnknownOutcomeError
from headwater.iceberg.metadata_json import MetadataParts, join_metadata
from headwater.iceberg_catalog.lake_files import LakeFiles
from headwater.store import ObjectId

_WRITERS = 8
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredVersion:
    """A version that was decided, and of which nothing is written.

    before        the table's content as it was decided from
    """

    key: ContentKey
    content_id: UUID
    before: IcebergTable
    content: IcebergTable
    parts: MetadataParts
    text: bytes

    @classmethod
    def of(
        cls, key: ContentKey, content_id: UUID, before: IcebergTable, content: IcebergTable, parts: MetadataParts
    ) -> ExpiredVersion:
        text = join_metadata(parts)
        return cls(key=key, content_id=content_id, before=before, content=content, parts=parts, text=text)


class ExpiryCommitter:
    """Commits versions to one branch.

    author        of the commits
    fence         called before every durable step
    """

    def __init__(self, catalog: Catalog, branch: str, files: LakeFiles, *, author: str, fence: Callable[[], None]) -> None:
        self._catalog = catalog
        self._branch = branch
        self._files = files
        self._author = author
        self._fence = fence

    def commit_versions(self, versions: Sequence[ExpiredVersion], *, expected: ObjectId) -> list[ExpiredVersion]:
        """Commit versions that were decided from one commit of the branch.

        returns       those that were not committed, for another commit was faster; nothing is left of them
        raises        what ``Catalog.commit`` raises otherwise; the files stay only if it may have happened
        """
        self._fence()
        self._write(versions)
        going, beaten = list(versions), list[ExpiredVersion]()
        while going:
            try:
                self._commit(going, expected)
            except UnknownOutcomeError:
                raise
            except (ConflictError, NotFoundError) as fault:  # not found: the branch was put elsewhere
                details = fault.details if isinstance(fault, ConflictError) else ()
                keys = {each.key for each in details if isinstance(each, Conflict)}
                lost = [version for version in going if version.key in keys] or going
            except HeadwaterError:
                self._remove(going)
                raise
            else:
                break
            self._remove(lost)
            beaten += lost
            going = [version for version in going if version not in lost]
        return beaten

    def _commit(self, versions: Sequence[ExpiredVersion], expected: ObjectId) -> None:
        self._catalog.commit(
            self._branch,
            [Put(version.key, version.content, version.before, version.parts) for version in versions],
            expected=expected,
            meta=CommitMeta(message=_message(versions), authors=(self._author,), committer=HEADWATER),
            examined=[version.content_id for version in versions],  # they name no file that was not named
            fence=self._fence,
        )

    def _write(self, versions: Sequence[ExpiredVersion]) -> None:
        written: list[ExpiredVersion] = []

        def write(version: ExpiredVersion) -> None:
            self._files.write_file(version.content.metadata_location, version.text)
            written.append(version)

        try:
            with ThreadPoolExecutor(_WRITERS, thread_name_prefix="expiry") as pool:
                list(pool.map(write, versions))
        except BaseException:
            self._remove(written)
            raise

    def _remove(self, versions: Sequence[ExpiredVersion]) -> None:
        self._files.remove_files(version.content.metadata_location for version in versions)


def _message(versions: Sequence[ExpiredVersion]) -> str:
    names = ", ".join(str(version.key) for version in versions[:_SHOWN])
    more = f" and {len(versions) - _SHOWN} more" if len(versions) > _SHOWN else ""
    return f"expire snapshots of {names}{more}"
