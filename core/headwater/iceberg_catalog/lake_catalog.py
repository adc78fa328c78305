"""One reference of a catalog, as every door finds it: a branch to read and write, or a tag or commit to read.

All operations read the reference's present state and are thread-safe. One that writes is decided anew when another commit was faster,
for as long as a commit may take, and needs a branch: on a tag or a commit it raises ReadOnlyReferenceError.

Beside what stands at an operation, they raise

    RefusedError          the request can never succeed as it is; also while the realm is not ACTIVE
    ConflictError         others were always faster
    UnavailableError      certainly nothing happened
    UnknownOutcomeError   it may have happened; no file that it may have committed was removed

``request`` of an operation is the key of a request that may be repeated: where it was applied before, the present state is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.catalogs import Catalog, TableClaims
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog.branch_session import BranchGuard, BranchSession, allow_all
from headwater.iceberg_catalog.content_puts import ContentPuts
from headwater.iceberg_catalog.file_takes import FileTakes
from headwater.iceberg_catalog.lake_commits import LakeCommits
from headwater.iceberg_catalog.lake_files import DocumentStorage, LakeFiles
from headwater.iceberg_catalog.lake_namespaces import LakeNamespaces
from headwater.iceberg_catalog.lake_tables import LakeTables
from headwater.iceberg_catalog.lake_views import LakeViews
from headwater.iceberg_catalog.table_purges import TablePurges
from headwater.realms import RealmRegistry
from headwater.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOptions:
    """What the owner of a process configures of a catalog.

    warehouse     below which new tables lie; None: the catalog's base location
    own           properties of file access that are the owner's own choice: a table or namespace may have the same ones
    check_table, check_view   further checks of metadata that was read from a file, for a client that reads less than the specification
                  allows; given the text and the file, they raise RefusedError with nothing of the text
    """

    warehouse: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    check_table: Callable[[bytes, str], object] | None = None
    check_view: Callable[[bytes, str], object] | None = None


class IcebergCatalog:
    """Iceberg's operations on one reference of a catalog. Thread-safe."""

    def __init__(
        self, store: Store, session: BranchSession, storage: DocumentStorage, options: LakeOptions | None = None
    ) -> None:
        chosen = options or LakeOptions()
        tables, views = (LakeFiles(session, storage, noun, own=chosen.own) for noun in ("table", "view"))
        self.session = session
        session.watch_takes(FileTakes(session.rows, session.id, storage).take_up)
        self.purges = TablePurges(store, session, tables)
        self.namespaces = LakeNamespaces(session, own=chosen.own, warehouse=chosen.warehouse)
        self.tables = LakeTables(session, tables, self.purges, warehouse=chosen.warehouse, check_text=chosen.check_table)
        self.views = LakeViews(session, views, warehouse=chosen.warehouse, check_text=chosen.check_view)
        self.commits = LakeCommits(session, ContentPuts(session, tables, self.tables, self.views, own=chosen.own))

    @classmethod
    def open(
        cls,
        store: Store,
        realm: str,
        catalog: str,
        reference: str | None = None,
        *,
        storage: DocumentStorage | None = None,
        author: str = "",
        committer: str = "",
        guard: BranchGuard = allow_all,
    ) -> IcebergCatalog:
        """Open a reference of a catalog; None: its default branch.

        storage       None: reached as the environment of the process says
        guard         asked about every change
        raises        NotFoundError for an unknown realm or catalog; RefusedError while the realm is not ACTIVE
        """
        session = open_session(store, realm, catalog, reference, author=author, committer=committer, guard=guard)
        return cls(store, session, storage or TableStorage(realm=realm, catalog=catalog))


def open_session(
    store: Store,
    realm: str,
    catalog: str,
    reference: str | None,
    *,
    author: str = "",
    committer: str = "",
    guard: BranchGuard = allow_all,
) -> BranchSession:
    """Open a reference of a catalog; raises as ``IcebergCatalog.open`` does."""
    rows = RealmRegistry(store).open_realm(realm)
    rows.check_write()
    claims = TableClaims(rows)
    return BranchSession(Catalog.open(rows, catalog), claims, rows, reference, author=author, committer=committer, guard=guard)
