"""Expiry of a catalog: its home tables on the branches that were chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import (
    CONTENT,
    HEADWATER,
    Catalog,
    CatalogDefinition,
    Catalogs,
    ContentKey,
    TableClaims,
)
from headwater.catalogs.history.merge_base import MergeBaseFinder
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.expiry.branch_expiry import BranchExpiry, BranchOrigin, ExpiryOrder
from headwater.expiry.expiry_counts import ExpiryCounts
from headwater.expiry.expiry_rules import ExpiryRules
from headwater.expiry.looked_tables import branch_prefix, forget_branches
from headwater.iceberg_catalog.branch_session import BranchSession
from headwater.iceberg_catalog.lake_files import DocumentStorage, LakeFiles
from headwater.policies import SnapshotRule
from headwater.store import RealmStore, id_text
from headwater.throttle import Fence, FenceWatch, ProgressCallback, RowRate, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryWish:
    """What is asked of a run.

    now           the moment at which it is decided what goes
    rules         what decides how much of a table stays
    is_home       whether the catalog is the home of a table
    branches      a pattern of branch names, as in policies
    keys          only these tables; empty: all
    is_dry        decide and count, and write nothing
    author        of the commits
    remembers     leave out tables that are as they were when they were looked at last while nothing of them is due
    """

    now: Micros
    rules: ExpiryRules
    is_home: Callable[[UUID], bool]
    branches: str = "*"
    keys: Collection[ContentKey] = ()
    is_dry: bool = False
    author: str = HEADWATER
    remembers: bool = True


class CatalogExpiry:
    """Expires the tables of one catalog.

    fence         called before every durable step
    check         called before every stretch of tables and every batch, in addition: the switch that stops maintenance
    progress      told how many contents of how many were passed
    """

    def __init__(
        self,
        rows: RealmStore,
        definition: CatalogDefinition,
        storage: DocumentStorage,
        wish: ExpiryWish,
        *,
        fence: Fence = lambda: None,
        check: Callable[[], None] = lambda: None,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self._rows = rows
        self._definition = definition
        self._storage = storage
        self._wish = wish
        self._fence = fence
        self._check = check
        self._progress = progress
        self._watch = FenceWatch(fence, rows.clock)
        self._rate = RowRate(rows.settings.expire_tables_per_second, rows.clock)
        self.counts = ExpiryCounts(rows.realm, definition.name, wish.is_dry)

    def expire(self) -> ExpiryCounts:
        """Expire the tables of all chosen branches, and return what was done.

        raises        what fence and check raise; UnavailableError; UnknownOutcomeError
        """
        if not self._wish.rules.allows_expiry:
            self.counts.add_note(
                "no policy of snapshots or metadata files says that anything may go: see `headwater policy set`"
            )
            return self.counts
        catalog, chosen = Catalog(self._rows, self._definition), SnapshotRule(branches=self._wish.branches)
        names = [branch.name for branch in catalog.branches() if chosen.covers(branch.name)]
        heads = {name: catalog.resolve(name) for name in names}
        total = sum(len(head.index(CONTENT)) for head in heads.values() if head is not None)
        order = self._order()
        done = 0

        def passed(contents: int) -> None:
            nonlocal done
            done += contents
            self._progress(done, max(total, done), "contents looked at")

        for name in names:
            self._expire_branch(name, order, passed)
        if not self._wish.is_dry:
            forget_branches(self._rows, _living_branches(self._rows), fence=self._fence)
        return self.counts

    def _order(self) -> ExpiryOrder:
        wish = self._wish
        return ExpiryOrder(
            rules=wish.rules,
            is_home=wish.is_home,
            keys=wish.keys,
            now_ms=wish.now // 1000,
            batch=self._rows.settings.expire_batch,
            is_dry=wish.is_dry,
            remembers=wish.remembers and not wish.keys,
        )

    def _expire_branch(self, name: str, order: ExpiryOrder, passed: Callable[[int], None]) -> None:
        catalog = Catalog(self._rows, self._definition)
        claims = TableClaims(self._rows)
        session = BranchSession(catalog, claims, self._rows, name, author=self._wish.author, committer=HEADWATER)
        expiry = BranchExpiry(
            session,
            LakeFiles(session, self._storage, "table", own={}),
            order,
            self.counts,
            origin=self._origin(catalog, name),
            check=self._check_on,
            fence=self._fence,
            wait_for=lambda tables: self._rate.wait_for(tables, self._watch),
        )
        try:
            expiry.expire(passed)
        except NotFoundError:
            if any(branch.name == name for branch in catalog.branches()):
                raise
            return  # it was deleted meanwhile
        self.counts.branches += 1

    def _origin(self, catalog: Catalog, name: str) -> BranchOrigin | None:
        """Where a branch parted from the default branch, if the run expires that one, too."""
        default = self._definition.default_branch
        if name == default or not SnapshotRule(branches=self._wish.branches).covers(default):
            return None
        head, target = catalog.resolve(name), catalog.resolve(default)
        if head is None or target is None:
            return None
        try:
            base = MergeBaseFinder(self._rows, head).find_base(self._rows, target.id, target.commit).commit
        except NotFoundError:  # nothing in common, or not any more: no merge will ask
            return None
        parted = None if base is None else catalog.resolve(id_text(base))
        return None if parted is None else BranchOrigin(parted.index(CONTENT), default)

    def _check_on(self) -> None:
        self._watch.check_now_and_then()
        self._check()


def _living_branches(rows: RealmStore) -> list[bytes]:
    """The prefixes of all branches of the realm's catalogs."""
    catalogs = [Catalog(rows, definition) for definition in Catalogs(rows).list_catalogs()]
    return [branch_prefix(catalog.definition.id, branch.name) for catalog in catalogs for branch in catalog.branches()]
