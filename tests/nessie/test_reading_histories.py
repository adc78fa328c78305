"""Histories of grants and commits: after each, what a caller reads through Nessie's API is what a naive oracle says.

HEADWATER_SOAK=1 tries a hundred times as many long histories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_nessie import NaiveCommit, NaiveNessie, NaiveOperation
from nessie_caller import NessieAnswer, NessieCaller, elements
from nessie_lakes import table, view

from fake_clock import FakeClock
from guarded_server import GuardedServer
from headwater import Settings, open_store
from headwater.access import Privilege, SecurableKind, check_grantable
from headwater.catalogs import Catalog, CatalogGrant, Content, ContentKey, ContentOperation, Delete, Namespace, Put
from headwater.errors import RefusedError
from headwater.store import id_text
from headwater_server.nessie import nessie_table
from naive_access import BRANCH, DEFAULT, GRANTED, Path
from tiers import IS_SOAK

NAMESPACES: tuple[Path, ...] = (("a",), ("b",), ("a", "c"))
THINGS = tuple((*namespace, name) for namespace in NAMESPACES for name in ("t", "v"))
KINDS = {"t": "table", "v": "view"}
PAGE = 3
LONG_EXAMPLES = 1500 if IS_SOAK else 15


def key(path: Path) -> ContentKey:
    return ContentKey(path)


def kind_of(path: Path) -> str:
    return KINDS.get(path[-1], "namespace")


@dataclass
class ReadingHistory:
    """A server and what the oracle thinks of it. Each step does the same to both; root makes the commits."""

    server: GuardedServer
    model: NaiveNessie = field(default_factory=NaiveNessie)
    number: int = 0

    def __post_init__(self) -> None:
        self.server.make_principal("guest")
        self.guest = NessieCaller(self.server.client).with_headers(**self.server.guest("guest").headers)
        self.lake: Catalog = self.server.catalog()

    def take(self, step: tuple[Any, ...]) -> None:
        actions: dict[str, Callable[..., None]] = {
            "grant": self.grant,
            "grant by id": self.grant_by_id,
            "revoke": self.revoke,
            "branch": self.branch,
            "put": self.put,
            "drop": self.drop,
            "rename": self.rename,
        }
        actions[step[0]](*step[1:])
        self.check(list(self.model.contents)[self.number % len(self.model.contents)])

    def grant(self, grant: CatalogGrant) -> None:
        self.server.grant("guest", grant)
        self.model.grants.append(grant)

    def grant_by_id(self, privilege: str, number: int, references: str) -> None:
        held = [(kind, id_) for kind, id_ in self.model.contents[DEFAULT].values() if kind != "namespace"]
        if held:
            kind, content_id = held[number % len(held)]
            if privilege.startswith(kind.upper()):
                self.grant(CatalogGrant(privilege=privilege, on=kind, content_id=content_id, references=references))

    def revoke(self, number: int) -> None:
        if self.model.grants:
            grant = self.model.grants[number % len(self.model.grants)]
            self.server.revoke("guest", grant)
            self.model.grants = [each for each in self.model.grants if each != grant]

    def branch(self) -> None:
        if BRANCH not in self.model.contents:
            self.lake.create_branch(BRANCH)
            self.model.contents[BRANCH] = dict(self.model.contents[DEFAULT])
            self.model.commits[BRANCH] = list(self.model.commits[DEFAULT])

    def put(self, reference: str, *paths: Path) -> None:
        """Create or change what is at some keys."""
        here = self.model.contents.get(reference)
        if here is None or any(path[:-1] and path[:-1] not in {*here, *paths} for path in paths):
            return
        puts = [Put(key(path), self.new_content(path, here.get(path))) for path in paths]
        self.commit(reference, puts, [])

    def drop(self, reference: str, path: Path) -> None:
        here = self.model.contents.get(reference, {})
        if path in here and not any(other[:-1] == path for other in here):
            self.commit(reference, [], [path])

    def rename(self, reference: str, path: Path, target: Path) -> None:
        here = self.model.contents.get(reference, {})
        is_possible = path in here and target not in here and target[:-1] in here and kind_of(path) == kind_of(target)
        if is_possible:
            content = self.lake.get_content(reference, key(path))
            assert content is not None
            self.commit(reference, [Put(key(target), content)], [path])

    def new_content(self, path: Path, present: tuple[str, Any] | None) -> Content:
        self.number += 1
        content_id = None if present is None else present[1]
        if kind_of(path) == "namespace":
            return Namespace(id=content_id, properties={"number": str(self.number)})
        if kind_of(path) == "table":
            return table(self.number, content_id=content_id)
        made = view(self.number)
        return type(made)(
            id=content_id, metadata_location=made.metadata_location, version_id=self.number, view_uuid=made.view_uuid
        )

    def commit(self, reference: str, puts: list[Put], dropped: list[Path]) -> None:
        self.number += 1
        operations: list[ContentOperation] = [*puts, *(Delete(key(path)) for path in dropped)]
        made = self.lake.commit(reference, operations, message=f"commit {self.number}").commit_id
        assert made is not None
        model, moved = self.model, {path: self.model.commits[reference][-1].versions[path] for path in dropped}
        here = model.contents[reference] = {
            path: held for path, held in model.contents[reference].items() if path not in dropped
        }
        last = model.commits[reference][-1].versions if model.commits[reference] else {}
        versions = {path: number for path, number in last.items() if path not in dropped}
        for each in puts:
            value = self.lake.get_content(reference, each.key)
            assert value is not None and value.id is not None
            here[each.key.elements] = (kind_of(each.key.elements), value.id)
            versions[each.key.elements] = next(iter(moved.values()), self.number)
        told = [NaiveOperation(each.key.elements, *here[each.key.elements]) for each in puts]
        told += [NaiveOperation(path) for path in dropped]
        model.commits[reference].append(NaiveCommit(id_text(made), told, here, versions))

    def check(self, *references: str) -> None:
        for reference in references:
            self.check_entries(reference)
            self.check_contents(reference)
            self.check_log(reference)
            self.check_state_before(reference)
        if BRANCH in self.model.contents:
            self.check_diff(DEFAULT, BRANCH)

    def check_entries(self, reference: str) -> None:
        refusal = self.model.refusal_of_reading(reference)
        if self.is_told(self.guest.get(f"trees/{reference}/entries", max_records=PAGE), refusal):
            entries = self.guest.read_all(f"trees/{reference}/entries", "entries", max_records=PAGE, content="true")
            assert {path_of(each["name"]): wholeness(each.get("content")) for each in entries} == self.model.entries(reference)

    def check_state_before(self, reference: str) -> None:
        refusal = self.model.refusal_of_reading(reference, is_history=True)
        if len(self.model.commits[reference]) < 2:
            return
        if self.is_told(self.guest.get(f"trees/{reference}~1/entries"), refusal):
            entries = self.guest.read_all(f"trees/{reference}~1/entries", "entries", content="true")
            with self.model.before(reference):
                expected = self.model.entries(reference)
            assert {path_of(each["name"]): wholeness(each.get("content")) for each in entries} == expected

    def check_contents(self, reference: str) -> None:
        paths = (*NAMESPACES, *THINGS)
        answer = self.guest.post(f"trees/{reference}/contents", {"requestedKeys": [elements(*path) for path in paths]})
        expected = self.model.read(reference, paths)
        if self.is_told(answer, self.model.refusal_of_reading(reference) or (403 if expected is None else None)):
            found = {path_of(each["key"]): wholeness(each["content"]) for each in answer.data["contents"]}
            assert found == expected

    def check_log(self, reference: str) -> None:
        refusal = self.model.refusal_of_reading(reference, is_history=True)
        if self.is_told(self.guest.get(f"trees/{reference}/history"), refusal):
            entries = self.guest.read_all(f"trees/{reference}/history", "logEntries", fetch="ALL", max_records=PAGE)
            assert [logged(each) for each in entries] == self.model.log(reference)

    def check_diff(self, first: str, second: str) -> None:
        refusal = self.model.refusal_of_reading(first, second, is_history=True)
        if self.is_told(self.guest.get(f"trees/{first}/diff/{second}"), refusal):
            diffs = self.guest.read_all(f"trees/{first}/diff/{second}", "diffs", max_records=1)
            assert [path_of(each["key"]) for each in diffs] == self.model.diff(first, second)

    def is_told(self, answer: NessieAnswer, refusal: int | None) -> bool:
        """Check the status of an answer; True where it has something to tell."""
        assert answer.status == (refusal or 200), (answer.content, self.model.grants)
        return refusal is None


def path_of(body: Any) -> Path:
    return tuple(body["elements"])


def wholeness(content: Any) -> bool | None:
    """Whether a content is whole: a namespace of these histories always has properties."""
    return None if content is None else content["type"] != "NAMESPACE" or bool(content.get("properties"))


def logged(entry: Any) -> tuple[str, bool, list[Path]]:
    shown = sorted(path_of(each["key"]) for each in entry.get("operations") or ())
    return entry["commitMeta"]["hash"], bool(entry["commitMeta"]["message"]), shown


def grantable(kind: str) -> list[str]:
    """The privileges of the oracle that can be granted on a kind of thing."""
    found = []
    for privilege in GRANTED:
        try:
            check_grantable(Privilege(privilege), SecurableKind(kind))
        except RefusedError:
            continue
        found.append(privilege)
    return found


PATTERNS = st.sampled_from(("", "", "*", "de*"))


def grants_on(kind: str, paths: tuple[Path, ...]) -> st.SearchStrategy[CatalogGrant]:
    return st.builds(
        lambda privilege, path, references: CatalogGrant(privilege=privilege, on=kind, path=path, references=references),
        st.sampled_from(grantable(kind)),
        st.sampled_from(paths),
        PATTERNS,
    )


HISTORY = st.builds(
    lambda references: CatalogGrant(privilege="REFERENCE_READ_HISTORY", on="catalog", references=references),
    st.sampled_from(("main", "de*", "*")),
)
GRANTS = st.one_of(
    HISTORY,
    grants_on("catalog", ((),)),
    grants_on("namespace", NAMESPACES),
    grants_on("table", THINGS[::2]),
    grants_on("view", THINGS[1::2]),
)
BRANCHES = st.sampled_from((DEFAULT, BRANCH))
STEPS = st.one_of(
    st.tuples(st.just("grant"), GRANTS),
    st.tuples(st.just("grant by id"), st.sampled_from([*grantable("table"), *grantable("view")]), st.integers(0, 9), PATTERNS),
    st.tuples(st.just("revoke"), st.integers(0, 9)),
    st.just(("branch",)),
    st.tuples(st.just("put"), BRANCHES, st.sampled_from(THINGS)),
    st.tuples(st.just("put"), BRANCHES, st.sampled_from(THINGS[:2]), st.sampled_from(THINGS[2:])),
    st.tuples(st.just("drop"), BRANCHES, st.sampled_from((*THINGS, *NAMESPACES))),
    st.tuples(st.just("rename"), BRANCHES, st.sampled_from(THINGS), st.sampled_from(THINGS)),
)
BEGINNING: list[tuple[Any, ...]] = [
    ("put", DEFAULT, *NAMESPACES),
    ("put", DEFAULT, *THINGS[:2], *THINGS[4:]),
    ("grant", CatalogGrant(privilege="REFERENCE_READ_HISTORY", on="catalog", references="*")),
    ("branch",),
    ("put", BRANCH, THINGS[0], THINGS[2]),
    ("grant", CatalogGrant(privilege="TABLE_READ_PROPERTIES", on="namespace", path=("a",), references=DEFAULT)),
]


def check_history(folder: FilePath, steps: list[tuple[Any, ...]]) -> None:
    """Live through a history on a server of its own."""
    keys, clock = folder / "keys", FakeClock()
    keys.mkdir(exist_ok=True)
    (keys / "2026-01").write_text("a first key of the tests, long enough\n")
    with open_store("memory://", settings=Settings(server_signing_keys=str(keys)), clock=clock) as store:
        server = GuardedServer(store, clock, (folder / "warehouse").as_uri(), protocols=[nessie_table()])
        server.make_realm("acme", "lake")
        history = ReadingHistory(server)
        try:
            for step in (*BEGINNING, *steps):
                history.take(step)
            history.check(*history.model.contents)
        finally:
            server.application.close()


@pytest.mark.long
@settings(max_examples=5, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=2, max_size=12))
def test_reading_is_answered_as_the_oracle_says(tmp_path: FilePath, steps: list[tuple[Any, ...]]) -> None:
    check_history(tmp_path, steps)


@pytest.mark.long
@pytest.mark.timeout(0 if IS_SOAK else 300)
@settings(
    max_examples=LONG_EXAMPLES,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=10, max_size=40))
def test_long_reading_is_answered_as_the_oracle_says(tmp_path: FilePath, steps: list[tuple[Any, ...]]) -> None:
    check_history(tmp_path, steps)
