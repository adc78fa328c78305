"""Histories of grants, changes and requests: after each, every decision and every listing is what a naive oracle says.

HEADWATER_SOAK=1 tries a hundred times as many long histories.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import pytest
from guarded_operations import VERSION
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_clock import FakeClock
from guarded_server import SCHEMA, GuardedServer, Guest
from headwater import Settings, open_store
from headwater.access import Privilege, SecurableKind, check_grantable
from headwater.catalogs import Catalog, CatalogGrant, Catalogs
from headwater.errors import RefusedError
from naive_access import BRANCH, DEFAULT, GRANTED, NaiveAccess, Path

IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
LONG_EXAMPLES = 1500 if IS_SOAK else 15
NAMESPACES: tuple[Path, ...] = (("a",), ("b",), ("a", "c"), ("a", "c", "d"))
TABLES = tuple((*namespace, name) for namespace in NAMESPACES[:3] for name in ("t", "u"))
VIEWS = tuple((*namespace, "v") for namespace in NAMESPACES[:3])
KINDS = {"t": "table", "u": "table", "v": "view"}
REFERENCES = (DEFAULT, BRANCH)


def at(path: Path, kind: str = "") -> str:
    """The address of a namespace, or of something in one."""
    return f"namespaces/{'%1F'.join(path)}" if not kind else f"{at(path[:-1])}/{kind}s/{path[-1]}"


def identifier(path: Path) -> dict[str, Any]:
    return {"namespace": list(path[:-1]), "name": path[-1]}


@dataclass
class History:
    """A server and what the oracle thinks of it. Each step does the same to both."""

    server: GuardedServer
    model: NaiveAccess = field(default_factory=NaiveAccess)
    taken: int = 0

    def __post_init__(self) -> None:
        self.server.make_principal("guest")
        self.callers = {name: self.server.guest(name) for name in ("root", "guest")}
        self.lake: Catalog = Catalogs(self.server.realms.open_realm("acme")).open_catalog("lake")

    def caller(self, name: str, reference: str) -> Guest:
        return self.callers[name].at(f"acme~lake~{reference}")

    def take(self, step: tuple[Any, ...]) -> None:
        actions: dict[str, Callable[..., None]] = {
            "grant": self.grant,
            "grant by id": self.grant_by_id,
            "revoke": self.revoke,
            "branch": self.branch,
        }
        action = actions.get(step[0])
        if action is not None:
            action(*step[1:])
        elif step[2] in self.model.contents:
            self.request(*step)
        self.taken += 1
        self.check_listings(NAMESPACES[self.taken % len(NAMESPACES)])

    def grant(self, grant: CatalogGrant) -> None:
        self.server.grant("guest", grant)
        self.model.grants.append(grant)

    def grant_by_id(self, privilege: str, number: int, references: str) -> None:
        held = [(kind, id_) for kind, id_ in self.model.contents[DEFAULT].values() if kind in ("table", "view")]
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
        if BRANCH not in self.model.contents and self.lake.resolve(None) is not None:
            self.lake.create_branch(BRANCH)
            self.model.contents[BRANCH] = dict(self.model.contents[DEFAULT])

    def request(self, name: str, who: str, reference: str, *paths: Path) -> None:
        expected = self.expected(name, who, reference, *paths)
        answer = getattr(self, f"ask_{name}")(self.caller(who, reference), *paths)
        assert answer.status == expected, (name, who, reference, paths, expected, answer.status, answer.content)
        if expected < 300:
            self.apply(name, reference, *paths)

    def expected(self, name: str, who: str, reference: str, *paths: Path) -> int:
        """What a request is answered: its refusal, or what its operation says to whoever may do everything."""
        refusal = None
        if who != "root":
            refusal = 404 if not self.model.reaches(reference) else self.refusal(name, reference, *paths)
        return refusal or self.outcome(name, reference, who, *paths)

    def refusal(self, name: str, reference: str, path: Path, target: Path = ()) -> int | None:
        refuse, create = self.model.refusal, self.model.refusal_to_create
        if name == "load_table" and self.model.find("table", path, reference) is None:
            return 404  # it is looked up first, for the answer that it did not change is the frequent one
        asked = {
            "load_table": lambda: refuse("TABLE_READ_PROPERTIES", "table", path, reference),
            "load_credentials": lambda: refuse("TABLE_READ_DATA", "table", path, reference),
            "load_view": lambda: refuse("VIEW_READ_PROPERTIES", "view", path, reference),
            "change_table": lambda: refuse("TABLE_WRITE_PROPERTIES", "table", path, reference),
            "drop_table": lambda: refuse("TABLE_DROP", "table", path, reference),
            "drop_namespace": lambda: refuse("NAMESPACE_DROP", "namespace", path, reference),
            "create_namespace": lambda: create("namespace", path, reference),
            "create_table": lambda: create("table", path, reference),
            "create_view": lambda: create("view", path, reference),
            "rename_table": lambda: (
                refuse("TABLE_DROP", "table", path, reference)
                or refuse("TABLE_READ_DATA", "table", path, reference)
                or create("table", target, reference)
            ),
        }
        return asked[name]()

    def outcome(self, name: str, reference: str, who: str, path: Path, target: Path = ()) -> int:
        here, verb, _, kind = self.model.contents[reference], *name.partition("_")
        if name == "create_namespace":
            return self.outcome_of_namespace(reference, who, path)
        if verb == "create":
            return 404 if self.model.find("namespace", path[:-1], reference) is None else 409 if path in here else 200
        if name == "drop_namespace":
            is_there = self.model.find("namespace", path, reference) is not None
            return 404 if not is_there else 409 if any(key[:-1] == path for key in here) else 204
        if name == "rename_table":
            if None in (self.model.find("namespace", target[:-1], reference), self.model.find("table", path, reference)):
                return 404
            return 409 if target != path and target in here else 204
        is_there = self.model.find("table" if kind == "credentials" else kind, path, reference) is not None
        return 404 if not is_there else 204 if verb == "drop" else 200

    def outcome_of_namespace(self, reference: str, who: str, path: Path) -> int:
        here = self.model.contents[reference]
        above = [path[:length] for length in range(1, len(path))]
        if path in here:
            return 409
        if any(here[each][0] != "namespace" for each in above if each in here):
            return 404
        for each in above if who != "root" else ():
            if each not in here and (refusal := self.model.refusal_to_create("namespace", each, reference)):
                return refusal
        return 200

    def apply(self, name: str, reference: str, path: Path, target: Path = ()) -> None:
        here, verb = self.model.contents[reference], name.partition("_")[0]
        if verb == "drop":
            del here[path]
        elif name == "rename_table":
            here[target] = here.pop(path)
        elif verb == "create":
            for entry in self.lake.entries(reference).entries:
                here.setdefault(entry.key.elements, (KINDS.get(entry.key.name, "namespace"), entry.content_id))

    def check_listings(self, *namespaces: Path) -> None:
        """Check what the guest is shown at the top, and in some namespaces: all would take as long as all the rest."""
        for reference in self.model.contents:
            guest = self.caller("guest", reference)
            if not self.model.reaches(reference):
                assert guest.get("namespaces").status == 404
                continue
            assert guest.names("namespaces") == self.model.listed("namespace", (), reference)
            for namespace in namespaces:
                is_there = self.model.find("namespace", namespace, reference) is not None
                status = self.model.refusal("NAMESPACE_LIST", "namespace", namespace, reference) or (200 if is_there else 404)
                for kind in ("table", "view"):
                    answer = guest.get(f"{at(namespace)}/{kind}s")
                    assert answer.status == status, (reference, namespace, kind, answer.content)
                    names = [each["name"] for each in answer.data["identifiers"]] if status == 200 else []
                    assert names == (self.model.listed(kind, namespace, reference) if status == 200 else [])

    def ask_load_table(self, caller: Guest, path: Path) -> Any:
        return caller.get(at(path, "table"))

    def ask_load_credentials(self, caller: Guest, path: Path) -> Any:
        return caller.get(f"{at(path, 'table')}/credentials")

    def ask_load_view(self, caller: Guest, path: Path) -> Any:
        return caller.get(at(path, "view"))

    def ask_change_table(self, caller: Guest, path: Path) -> Any:
        change = {"action": "set-properties", "updates": {"owner": "me"}}
        return caller.post(at(path, "table"), {"requirements": [], "updates": [change]})

    def ask_drop_table(self, caller: Guest, path: Path) -> Any:
        return caller.delete(at(path, "table"))

    def ask_drop_namespace(self, caller: Guest, path: Path) -> Any:
        return caller.delete(at(path))

    def ask_create_namespace(self, caller: Guest, path: Path) -> Any:
        return caller.post("namespaces", {"namespace": list(path)})

    def ask_create_table(self, caller: Guest, path: Path) -> Any:
        return caller.post(f"{at(path[:-1])}/tables", {"name": path[-1], "schema": SCHEMA})

    def ask_create_view(self, caller: Guest, path: Path) -> Any:
        body = {"name": path[-1], "schema": SCHEMA, "view-version": VERSION, "properties": {}}
        return caller.post(f"{at(path[:-1])}/views", body)

    def ask_rename_table(self, caller: Guest, path: Path, target: Path) -> Any:
        return caller.post("tables/rename", {"source": identifier(path), "destination": identifier(target)})


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


def grants_on(kind: str, paths: tuple[Path, ...]) -> st.SearchStrategy[CatalogGrant]:
    return st.builds(
        lambda privilege, path, references: CatalogGrant(privilege=privilege, on=kind, path=path, references=references),
        st.sampled_from(grantable(kind)),
        st.sampled_from(paths),
        st.sampled_from(("", "", "*", BRANCH)),
    )


def requests_for(names: tuple[str, ...], *paths: tuple[Path, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(
        st.sampled_from(names),
        st.sampled_from(("guest", "guest", "root")),
        st.sampled_from(REFERENCES),
        *map(st.sampled_from, paths),
    )


GRANTS = st.one_of(
    grants_on("catalog", ((),)), grants_on("namespace", NAMESPACES), grants_on("table", TABLES), grants_on("view", VIEWS)
)
STEPS = st.one_of(
    st.tuples(st.just("grant"), GRANTS),
    st.tuples(
        st.just("grant by id"),
        st.sampled_from([*grantable("table"), *grantable("view")]),
        st.integers(0, 9),
        st.sampled_from(("", "*", BRANCH)),
    ),
    st.tuples(st.just("revoke"), st.integers(0, 9)),
    st.just(("branch",)),
    requests_for(("load_table", "load_credentials", "change_table", "drop_table", "create_table"), TABLES),
    requests_for(("rename_table",), TABLES, TABLES),
    requests_for(("load_view", "create_view"), VIEWS),
    requests_for(("create_namespace", "drop_namespace"), NAMESPACES),
)
BEGINNING = [
    *(("create_namespace", "root", DEFAULT, namespace) for namespace in NAMESPACES[:3]),
    *(("create_table", "root", DEFAULT, table) for table in (TABLES[0], TABLES[4])),
    ("create_view", "root", DEFAULT, VIEWS[0]),
]


def check_history(folder: FilePath, steps: list[tuple[Any, ...]]) -> None:
    """Live through a history on a server of its own."""
    keys = folder / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "2026-01").write_text("a first key of the tests, long enough\n")
    with open_store("memory://", settings=Settings(server_signing_keys=str(keys)), clock=FakeClock()) as store:
        server = GuardedServer(store, store.clock, (folder / "warehouse").as_uri())  # type: ignore[arg-type]  # a FakeClock
        server.make_realm("acme", "lake")
        history = History(server)
        try:
            for step in (*BEGINNING, *steps):
                history.take(step)
            history.check_listings(*NAMESPACES)
        finally:
            server.application.close()


@settings(max_examples=12, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=4, max_size=15))
def test_history_is_answered_as_the_oracle_says(tmp_path: FilePath, steps: list[tuple[Any, ...]]) -> None:
    check_history(tmp_path, steps)


@pytest.mark.long
@pytest.mark.timeout(0 if IS_SOAK else 300)
@settings(
    max_examples=LONG_EXAMPLES,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=10, max_size=40))
def test_long_history_is_answered_as_the_oracle_says(tmp_path: FilePath, steps: list[tuple[Any, ...]]) -> None:
    check_history(tmp_path, steps)
