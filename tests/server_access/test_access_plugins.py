"""Plug-ins that decide instead of the grants: found as entry points, asked in batches, and never believed when they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fake_clock import FakeClock
from guarded_server import GuardedServer, held
from headwater import Settings, open_store
from headwater.access import AccessQuestion, AccessSubject, Privilege
from headwater.errors import RefusedError

EXAMPLE = Path(__file__).parents[2] / "examples" / "cedar_access"
BATCHES: list[tuple[AccessSubject, Sequence[AccessQuestion]]] = []


class TestPlugin:
    """Allows what its file names, one privilege a line; ``fail`` and ``half`` are failures."""

    __test__ = False

    def __init__(self, file: str) -> None:
        self.words = set(Path(file).read_text().split())

    def decide(self, subject: AccessSubject, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        BATCHES.append((subject, questions))
        if "fail" in self.words:
            raise ValueError("the policies of nobody's business")
        answers = [question.privilege.value in self.words for question in questions]
        return answers[1:] if "half" in self.words else answers


Serve = Callable[..., GuardedServer]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, Path], None]:
    """Installs a plug-in as pip would: a folder with the metadata of a distribution on the path."""

    def make(name: str, target: str, module: Path) -> None:
        info = tmp_path / "site" / "plugin-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[headwater.access]\n{name} = {target}\n")
        monkeypatch.syspath_prepend(str(module))
        monkeypatch.syspath_prepend(str(info.parent))

    return make


@pytest.fixture
def serve(keys: Path, tmp_path: Path) -> Iterator[Serve]:
    opened = []

    def make(plugin: str, text: str) -> GuardedServer:
        file = tmp_path / "policies"
        file.write_text(text)
        settings = Settings(server_signing_keys=str(keys), server_access=plugin, server_access_file=str(file))
        clock = FakeClock()
        store = open_store("memory://", settings=settings, clock=clock)
        opened.append(store)
        server = GuardedServer(store, clock, (tmp_path / "warehouse").as_uri())
        server.make_realm("acme", "lake")
        return server

    BATCHES.clear()
    yield make
    for store in opened:
        store.close()


@pytest.fixture
def plugged(install: Callable[[str, str, Path], None], serve: Serve) -> Callable[[str], GuardedServer]:
    install("words", f"{__name__}:TestPlugin", Path(__file__).parent)
    sys.modules.setdefault("test_access_plugins", sys.modules[__name__])
    return lambda text: serve("words", text)


def test_plugin_decides_instead_of_the_grants(plugged: Callable[[str], GuardedServer]) -> None:
    server = plugged("CATALOG_LIST NAMESPACE_LIST NAMESPACE_CREATE")
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    alice = server.guest("alice")

    assert alice.post("namespaces", {"namespace": ["sales"]}).status == 200
    assert alice.get("namespaces/sales").error == (403, "ForbiddenException")
    subject, questions = BATCHES[-1]
    assert (subject.realm, subject.name, subject.roles) == ("acme", "alice", ("alice",))
    assert questions[0].on.path == ("sales",)


def test_listing_asks_a_page_at_once(plugged: Callable[[str], GuardedServer]) -> None:
    server = plugged("CATALOG_LIST NAMESPACE_LIST NAMESPACE_CREATE")
    root = server.guest("root")
    for number in range(30):
        root.post("namespaces", {"namespace": [f"n{number}"]})
    BATCHES.clear()

    assert len(root.names("namespaces")) == 30
    assert max(len(questions) for _, questions in BATCHES) == 30


@pytest.mark.parametrize("fault", ["fail", "half"])
def test_plugin_that_fails_allows_nothing(plugged: Callable[[str], GuardedServer], fault: str) -> None:
    server = plugged(f"CATALOG_LIST NAMESPACE_LIST {fault}")
    answer = server.guest("root").config("acme/lake")

    assert answer.error == (503, "ServiceUnavailableException")
    assert "nobody's business" not in answer.message


def test_plugin_that_is_not_installed_is_refused_at_the_start(serve: Serve) -> None:
    with pytest.raises(
        RefusedError, match=r"no access plug-in 'rego': install one that has an entry point in headwater\.access"
    ):
        serve("rego", "")


def test_plugin_without_callers_is_refused() -> None:
    with (
        open_store("memory://", settings=Settings(server_access="words")) as store,
        pytest.raises(RefusedError, match="HEADWATER_SERVER_SIGNING_KEYS"),
    ):
        GuardedServer(store, FakeClock(), "file:///nowhere")


def test_cedar_example_tells_slashes_within_names_apart(install: Callable[[str, str, Path], None], serve: Serve) -> None:
    install("cedar", "cedar_access:make_access", EXAMPLE)
    policies = """
        permit (principal == User::"acme/root", action, resource);
        permit (principal, action == Action::"CATALOG_LIST", resource);
        permit (principal, action, resource == Namespace::"lake/sales/eu");
    """
    server = serve("cedar", policies)
    root = server.guest("root")
    for namespace in (["sales", "eu"], ["sales/eu"]):
        assert root.post("namespaces", {"namespace": namespace}).status == 200
    server.make_principal("analysts")
    analyst = server.guest("analysts")

    assert analyst.get("namespaces/sales%1Feu").status == 200
    assert analyst.get("namespaces/sales%2Feu").status == 404


def test_cedar_example_lets_analysts_read_one_namespace(install: Callable[[str, str, Path], None], serve: Serve) -> None:
    install("cedar", "cedar_access:make_access", EXAMPLE)
    server = serve("cedar", (EXAMPLE / "policies.cedar").read_text())
    server.make_table("sales", "orders")
    server.make_table("sales", "salaries")
    server.make_table("hidden", "orders")
    server.make_principal("analysts")
    analyst = server.guest("analysts")

    assert analyst.names("namespaces") == ["sales"]
    assert analyst.names("namespaces/sales/tables") == ["orders"]
    assert analyst.get("namespaces/sales/tables/orders").status == 200
    assert analyst.get("namespaces/sales/tables/salaries").error == (404, "NoSuchTableException")
    assert analyst.delete("namespaces/sales/tables/orders").error == (403, "ForbiddenException")
    assert analyst.get("namespaces/hidden/tables").error == (404, "NoSuchNamespaceException")
