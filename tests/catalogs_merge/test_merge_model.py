"""Whatever is committed, merged and transplanted, no key is ever without its namespaces, and content ids tell where contents stand."""

from __future__ import annotations

from uuid import uuid4

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sketched_branches import Branching, conflicted_or_done, key, table

from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    Catalogs,
    Conflict,
    ContentKey,
    ContentOperation,
    Delete,
    IcebergView,
    KeyMerge,
    MergeMode,
    MergeOptions,
    Namespace,
    Put,
)
from headwater.catalogs.content import with_id
from headwater.errors import ConflictError, RefusedError
from headwater.store import RealmId, RealmKey, open_store

BRANCHES = ("main", "dev", "side")
branches = st.sampled_from(BRANCHES)
keys = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(".".join)
words = st.sampled_from(["space", "table", "view", "delete", "replace", "change"])
modes = st.sampled_from(MergeMode)


class Branches(RuleBasedStateMachine):
    """Three branches that are changed and merged at random; what conflicts is left."""

    def __init__(self) -> None:
        super().__init__()
        self.store = open_store("memory://")
        rows = self.store.rows(RealmId("acme"), RealmKey(self.store.new_id()))
        for name in (CATALOGS, CLAIMS):
            rows.ensure_reference(name)
        catalogs = Catalogs(rows)
        catalogs.create_catalog("lake", base_location="s3://lake/")
        self.lake = Branching(catalogs.open_catalog("lake"))
        self.lake.put("main", "a/", "b")
        for name in BRANCHES[1:]:
            self.lake.catalog.create_branch(name)
        self.changed = set(BRANCHES)

    def teardown(self) -> None:
        self.store.close()

    @rule(branch=branches, steps=st.lists(st.tuples(keys, words), min_size=1, max_size=4))
    def commit(self, branch: str, steps: list[tuple[str, str]]) -> None:
        operations = [operation for text, word in steps for operation in self._operations(branch, key(text), word)]
        try:
            self.lake.catalog.commit(branch, operations)
        except (ConflictError, RefusedError):
            return
        self.changed.add(branch)

    @rule(branch=branches, old=keys, new=keys)
    def rename(self, branch: str, old: str, new: str) -> None:
        content = self.lake.catalog.get_content(branch, key(old))
        if content is None or old == new:
            return
        try:
            self.lake.catalog.commit(branch, [Delete(key(old)), Put(key(new), content)])
        except (ConflictError, RefusedError):
            return
        self.changed.add(branch)

    @rule(source=branches, into=branches, mode=modes, own=st.dictionaries(keys, modes, max_size=3))
    def merge(self, source: str, into: str, mode: MergeMode, own: dict[str, MergeMode]) -> None:
        catalog = self.lake.catalog
        seen = conflicted_or_done(lambda: catalog.merge(source, into, options=MergeOptions(mode=mode, dry_run=True)))
        touched = {one.key for one in seen.merged_keys}
        named = {key(text): KeyMerge(mode=one) for text, one in own.items() if key(text) in touched}
        options = MergeOptions(mode=mode, keys=named)
        done = conflicted_or_done(lambda: catalog.merge(source, into, options=options))
        assert all(isinstance(one, Conflict) for one in done.conflicts)
        assert not (done.conflicts and done.is_applied)
        self.changed.add(into)

    @rule(source=branches, into=branches, count=st.integers(1, 4), mode=modes)
    def transplant(self, source: str, into: str, count: int, mode: MergeMode) -> None:
        picked = [entry.id for entry in self.lake.catalog.log(source, limit=count)][::-1]
        options = MergeOptions(mode=mode)
        before = self.lake.head(into)
        done = conflicted_or_done(lambda: self.lake.catalog.transplant(source, picked, into, options=options))
        assert self.lake.head(into) == (done.commits[-1] if done.commits else before)
        self.changed.add(into)

    @rule(branch=branches, text=keys)
    def put_with_an_id_from_nowhere(self, branch: str, text: str) -> None:
        try:
            self.lake.catalog.commit(branch, [Put(key(text), with_id(table("9"), uuid4()))])
        except (ConflictError, RefusedError):
            return
        raise AssertionError("an id that the catalog did not give was taken")

    @invariant()
    def everything_has_its_place(self) -> None:
        for branch in self.changed:
            self.lake.check(branch)
        self.changed.clear()

    def _operations(self, branch: str, at: ContentKey, word: str) -> list[ContentOperation]:
        there = self.lake.catalog.get_content(branch, at)
        if word == "delete":
            return [Delete(at)]
        if word == "replace":
            return [Delete(at), Put(at, Namespace())]
        if word == "change":
            return [] if there is None or there.id is None else [Put(at, with_id(Namespace(properties={"n": "2"}), there.id))]
        if word == "view":
            return [Put(at, IcebergView(metadata_location="s3://lake/view.json"))]
        return [Put(at, Namespace() if word == "space" else table())]


TestBranches = Branches.TestCase
TestBranches.settings = settings(max_examples=60, stateful_step_count=25)
