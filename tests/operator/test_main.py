"""The command `headwater-operator`: settings told wrong at once, the self-check, and the life of the process."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from answer_server import Answering, Asked, answering, status

from headwater.realms import RealmRegistry
from headwater.store import open_store
from headwater_operator.kubectl_command import kubectl_main as run_plugin
from headwater_operator.main import EXIT_CODES, main
from headwater_operator.permissions import LEASE_PERMISSIONS, PERMISSIONS
from kube_fixtures import Installation, installation
from kubetest import Cluster, Namespace, Operator, start_operator, wait_for
from kubetest.cluster import ROOT
from kubetest.emulated import Emulated, start_emulated, write_kubeconfig
from kubetest.processes import clean_environment
from noisy_python import NOISE, noisy_variables

__all__ = ["installation"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``run("check")`` is the command line in this process: its exit code, and what it printed and complained about."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = capsys.readouterr()
        return int(str(ended.value.code)), printed.out, printed.err

    return call


Run = Callable[..., tuple[int, str, str]]
Fail = Callable[..., None]


@pytest.fixture
def environment(cluster_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in cluster_environment.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def cluster_environment(namespace: Namespace, tmp_path: Path) -> dict[str, str]:
    return {
        "KUBECONFIG": str(namespace.cluster.kubeconfig),
        "HEADWATER_STORE": f"sqlite:///{tmp_path}/store.db",
        "HEADWATER_OPERATOR_NAMESPACE": namespace.name,
        "HEADWATER_OPERATOR_NAMESPACES": namespace.name,
    }


@pytest.fixture
def fail(controlled_cluster: Cluster, namespace: Namespace) -> Iterator[Fail]:
    """``fail(action="403", verb="watch")`` makes the API server of the cluster fail so in the test's namespace."""
    control = f"{controlled_cluster.server.control}/_control/faults"

    def ask(method: str, body: object = None) -> None:
        urllib.request.urlopen(urllib.request.Request(control, json.dumps(body).encode(), method=method), timeout=10).close()

    yield lambda **fault: ask("POST", {"namespace": namespace.name, **fault})
    ask("DELETE")


def test_faults_in_both_kinds_of_settings_are_told_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_RUNS_KEPT", "many")
    monkeypatch.setenv("HEADWATER_OPERATOR_PORT", "high")
    code, _, complaint = run("run")

    assert code == 2
    assert "HEADWATER_RUNS_KEPT" in complaint and "HEADWATER_OPERATOR_PORT" in complaint


@pytest.mark.parametrize(("variable", "code"), [("HEADWATER_OPERATOR_PORT", 2), ("KUBECONFIG", 5)])
def test_failure_is_a_line_of_a_json_log(run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, code: int) -> None:
    monkeypatch.setenv("HEADWATER_LOG_FORMAT", "json")
    monkeypatch.setenv("HEADWATER_STORE", "memory://")
    monkeypatch.setenv(variable, "nothing")
    for owner, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(owner, hook, getattr(owner, hook))
    ended, _, complaint = run("run")

    assert (ended, [json.loads(line)["level"] for line in complaint.splitlines()][-1]) == (code, "error")


@pytest.mark.parametrize("command", ["run", "check"])
def test_no_cluster_to_talk_to_is_told_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    monkeypatch.setenv("HEADWATER_STORE", "memory://")
    code, _, complaint = run(command)

    assert code == 5
    assert re.fullmatch(r"headwater-operator: no cluster to talk to: [^\n]+\n", complaint)


def test_unknown_word_is_told_as_usage(run: Run) -> None:
    code, _, complaint = run("walk")

    assert (code, "walk" in complaint) == (2, True)


def test_each_exit_code_is_documented_once() -> None:
    assert list(EXIT_CODES) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]


def test_check_finds_all_in_order(run: Run, environment: pytest.MonkeyPatch) -> None:
    code, printed, _ = run("check")

    assert code == 0, printed
    assert [line.split()[0] for line in printed.splitlines()] == ["ok"] * 8


def test_check_changes_nothing(run: Run, environment: pytest.MonkeyPatch, namespace: Namespace, tmp_path: Path) -> None:
    code, printed, _ = run("check")

    assert namespace.find("Lease", "headwater-operator") is None
    assert list(tmp_path.glob("store.db*")) == []
    assert (code, printed.splitlines()[-1].endswith("; the operator creates it")) == (0, True), printed


def test_check_counts_the_realms_of_a_store(run: Run, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        RealmRegistry(store).create_realm("acme")
    _, printed, _ = run("check")

    assert printed.splitlines()[-1].endswith("store.db answers, with 1 realm")


def test_store_that_cannot_be_opened_is_one_finding(run: Run, environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is no database, and was written by somebody else\n" * 50)
    code, printed, _ = run("check")

    assert code != 0
    assert [line.split()[0] for line in printed.splitlines()] == ["ok"] * 7 + ["FAILED"]


@pytest.mark.parametrize(
    ("module", "words"), [("headwater_operator.process", ["run"]), ("headwater_operator.self_check", ["check"])]
)
def test_module_of_ours_that_is_missing_is_a_bug(
    run: Run, monkeypatch: pytest.MonkeyPatch, module: str, words: list[str]
) -> None:
    monkeypatch.setenv("HEADWATER_STORE", "memory://")
    monkeypatch.setitem(sys.modules, module, None)
    code, _, complaint = run(*words)

    assert (code, complaint.splitlines()[-1].startswith("headwater-operator: a bug: ModuleNotFoundError: ")) == (1, True)


def test_module_of_the_plugin_that_is_missing_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "headwater_operator.plugin", None)
    with pytest.raises(SystemExit) as ended:
        run_plugin()

    assert (ended.value.code, capsys.readouterr().err.startswith("kubectl-headwater: a bug: ModuleNotFoundError: ")) == (
        1,
        True,
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Answering]:
    """An API server that lacks what the test wants it to lack."""
    with answering() as started:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "kubeconfig", started.url)))
        monkeypatch.setenv("HEADWATER_STORE", "memory://")
        yield started


BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}


DEFINITIONS = {
    definition["metadata"]["name"]: definition
    for path in sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
    for definition in yaml.safe_load_all(path.read_text(encoding="utf-8"))
}


def permissive(asked: Asked, *, refused: tuple[str, str] = ("", "")) -> tuple[int, object]:
    """Answers of a server that has everything and allows everything, but for one verb on one resource."""
    if asked.path == "/version":
        return 200, {"gitVersion": "v1.36.0"}
    if "/customresourcedefinitions/" in asked.path:
        file = ROOT / "crds" / f"headwater.dev_{asked.path.rpartition('/')[2].partition('.')[0]}.yaml"
        return 200, yaml.safe_load(file.read_text(encoding="utf-8"))
    if asked.path.endswith("selfsubjectaccessreviews"):
        wanted = asked.body["spec"]["resourceAttributes"]
        return 201, {"status": {"allowed": (wanted["verb"], wanted["resource"]) != refused}}
    if "/customresourcedefinitions/" in asked.path:
        return 200, DEFINITIONS[asked.path.rpartition("/")[2]]
    if asked.path.endswith(("/realms", "/catalogs")):
        return 200, BOOKMARK if "watch" in asked.parameters else {"items": [], "metadata": {"resourceVersion": "1"}}
    names = ["realms", "realms/status", "catalogs", "catalogs/status"]
    return 200, {"kind": "APIResourceList", "resources": [{"name": name} for name in names]}


def test_check_asks_for_every_right_that_the_operator_uses(run: Run, server: Answering) -> None:
    server.answer = permissive
    run("check")
    asked = {
        (one["group"], "/".join(filter(None, [one["resource"], one.get("subresource")])), one["verb"])
        for one in (asked.body["spec"]["resourceAttributes"] for asked in server.asked if asked.body)
    }

    assert asked == {(one.group, one.resource, one.verb) for one in (*PERMISSIONS, *LEASE_PERMISSIONS)}


def test_missing_right_is_named_and_the_rest_is_looked_at(run: Run, server: Answering) -> None:
    server.answer = lambda asked: permissive(asked, refused=("create", "secrets"))
    code, printed, _ = run("check")

    assert code == 5
    assert "may not create secrets:" in printed
    assert [line.split()[0] for line in printed.splitlines()] == ["ok", "ok", "ok", "FAILED", "ok", "ok", "ok", "ok"]


def test_check_watches_as_the_operator_does(run: Run, server: Answering) -> None:
    server.answer = permissive
    run("check")

    watches = [asked for asked in server.asked if "watch" in asked.parameters]
    assert [asked.path.rpartition("/")[2] for asked in watches] == ["realms", "catalogs"]
    wanted = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "1", "timeoutSeconds": "600"}
    assert [asked.parameters for asked in watches] == [wanted] * 2


def test_definition_that_is_older_is_named_with_what_it_drops(run: Run, server: Answering) -> None:
    def older(asked: Asked) -> tuple[int, object]:
        code, body = permissive(asked)
        if asked.path.endswith("/customresourcedefinitions/realms.headwater.dev"):
            del body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["roles"]  # type: ignore[index]
        return code, body

    server.answer = older
    code, printed, _ = run("check")

    assert code == 5
    assert "FAILED  fields of the definitions: the definition realms.headwater.dev in the cluster is older" in printed
    assert "drops spec.roles" in printed
    assert "apply the CRDs" in printed


def test_watch_that_is_refused_is_named_with_the_servers_words(run: Run, server: Answering) -> None:
    words = 'strconv.ParseInt: parsing "600.0": invalid syntax'
    server.answer = lambda asked: (
        status(400, "BadRequest", words) if "watch" in asked.parameters and asked.path.endswith("realms") else permissive(asked)
    )
    code, printed, _ = run("check")

    assert code == 5
    failed = [line for line in printed.splitlines() if line.startswith("FAILED")]
    assert failed == [
        f"FAILED  watch of realms.headwater.dev in all namespaces: GET /apis/headwater.dev/v1alpha1/realms: {words} (400)"
    ]


TOO_OLD = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"}


def test_watch_whose_list_is_too_old_already_is_unavailable(run: Run, server: Answering) -> None:
    server.answer = lambda asked: (
        (410, TOO_OLD) if "watch" in asked.parameters and asked.path.endswith("realms") else permissive(asked)
    )
    code, printed, _ = run("check")

    assert code == 4
    assert "watch of /apis/headwater.dev/v1alpha1/realms: it ended as soon as it was opened: " in printed


def test_watch_that_may_not_be_opened_is_refused(run: Run, environment: pytest.MonkeyPatch, fail: Fail) -> None:
    fail(action="403", verb="watch", resource="catalogs", times=-1)
    code, printed, _ = run("check")

    assert code == 5
    assert [line.split()[0] for line in printed.splitlines()] == ["ok", "ok", "ok", "ok", "ok", "ok", "FAILED", "ok"]
    assert "catalogs: forbidden: injected by a test (403)" in printed


def test_watch_that_does_not_answer_is_unavailable(run: Run, environment: pytest.MonkeyPatch, fail: Fail) -> None:
    environment.setenv("HEADWATER_OPERATOR_CONNECT_TIMEOUT", "500ms")
    environment.setenv("HEADWATER_OPERATOR_REQUEST_TIMEOUT", "1s")
    fail(action="delay", seconds=60, verb="watch", resource="realms", times=-1)
    code, printed, _ = run("check")

    assert code == 4
    assert "/realms: no answer (" in printed and "read timeout=1.0" in printed


def test_missing_resource_definitions_are_named(run: Run, server: Answering) -> None:
    server.answer = lambda asked: (
        status(404, "NotFound", "not found") if asked.path.startswith("/apis/headwater.dev") else permissive(asked)
    )
    code, printed, _ = run("check")

    assert code == 3
    assert "does not serve realms.headwater.dev, catalogs.headwater.dev" in printed


def test_api_server_that_is_away_is_unavailable(run: Run, server: Answering) -> None:
    server.answer = lambda asked: None
    code, printed, _ = run("check")

    assert code == 4
    assert printed.splitlines()[-1].startswith("ok      store")


def test_store_that_is_refused_ends_the_process_before_it_leads(
    run: Run, server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_STORE", "oracle://u:secret-word@db/x")
    code, _, complaint = run("run")

    assert (code, "secret-word" in complaint, server.asked) == (5, False, [])


def test_process_ends_well_when_it_is_asked_to(installation: Installation) -> None:
    operator = installation.start_operator()

    assert operator.stop() == 0
    assert [word for word in ("operator started", "leader elected", "operator stopped") if word not in operator.said] == []


@pytest.mark.long
def test_standby_ends_well_too(installation: Installation) -> None:
    installation.start_operator()

    assert installation.start_operator().stop() == 0


@pytest.mark.long
def test_lease_is_not_there_without_election(installation: Installation, namespace: Namespace) -> None:
    operator = installation.start_operator(OPERATOR_LEADER_ELECTION="false")

    assert operator.metric("headwater_operator_leader") == 1
    assert namespace.find("Lease", "headwater-operator") is None
    assert operator.stop() == 0


@pytest.mark.long
def test_logs_are_lines_of_json_for_a_machine(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    installation.changes |= {"LOG_FORMAT": "json", "QWERTY": "1", "SERVER_PORT_8181_TCP": "tcp://10.0.0.1:8181"}
    for name, value in noisy_variables(installation.folder).items():
        monkeypatch.setenv(name, value)
    operator = installation.start_operator()
    operator.stop()
    lines = [json.loads(line) for line in operator.said.splitlines()]
    events = [line["event"] for line in lines]

    assert {"event", "level", "timestamp"} <= set(lines[0])
    assert "leader elected" in events
    assert len([event for event in events if "HEADWATER_" in event]) == 1
    assert [noise for noise in NOISE if not any(noise in event for event in events)] == []


@pytest.mark.long
def test_credentials_are_never_logged(installation: Installation, namespace: Namespace) -> None:
    operator = installation.start_operator()
    namespace.apply({"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "acme"}, "spec": {}})
    namespace.wait_for_condition("Realm", "acme", "Ready")
    secret = namespace.read("Secret", "acme-root-credentials")["data"]
    operator.stop()

    assert [
        text for text in (secret["clientSecret"], b64decode(secret["clientSecret"]).decode()) if text in operator.said
    ] == []


@pytest.fixture
def bare_server(tmp_path: Path) -> Iterator[Emulated]:
    """An API server that does not know our resources."""
    server = start_emulated(tmp_path)
    yield server
    server.stop()


@pytest.mark.long
def test_process_without_our_resources_ends_and_says_what_to_do(bare_server: Emulated, tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(bare_server.kubeconfig), "HEADWATER_STORE": "memory://", "PATH": "/usr/bin:/bin"}
    operator = start_operator(environment, tmp_path / "log")
    try:
        code = operator.popen.wait(30)
    finally:
        operator.kill()

    assert code == 3
    assert "install the custom resource definitions first" in operator.said
    assert "lease released" in operator.said


TOLD_WHILE_IT_IMPORTS = """
import signal, sys
from headwater_operator.main import main

class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "headwater_operator.process":
            signal.raise_signal(signal.SIGTERM)

sys.meta_path.insert(0, Told())
main(["run"])
"""


@pytest.mark.long
def test_operator_told_to_end_while_it_imports_ends_well(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    environment = clean_environment() | {"HEADWATER_STORE": f"sqlite:///{store}"}
    ended = subprocess.run([sys.executable, "-c", TOLD_WHILE_IT_IMPORTS], env=environment, timeout=250, check=False)

    assert (ended.returncode, store.exists()) == (0, False)


@pytest.mark.rare(3)
@pytest.mark.long
def test_operator_told_to_end_at_any_moment_releases_its_lease(installation: Installation, namespace: Namespace) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    for turn in range(6):
        operator = installation.start_operator(wait=False)
        wait_for(lambda started=operator: "operator started" in started.said, seconds=60, why=operator.last_words)
        time.sleep(chance.uniform(0.0, 0.4))

        assert operator.stop() == 0, (seed, turn)
        assert "holderIdentity" not in (namespace.find("Lease", "headwater-operator") or {"spec": {}})["spec"], (seed, turn)


@pytest.mark.long
def test_second_signal_ends_a_process_that_takes_its_time(installation: Installation) -> None:
    operator: Operator = installation.start_operator()
    operator.pause()
    operator.popen.terminate()
    operator.popen.send_signal(2)
    operator.resume()

    assert operator.popen.wait(20) in (0, 128 + 2, 128 + 15)


@pytest.mark.long
def test_port_that_is_taken_ends_the_process_with_a_reason(installation: Installation) -> None:
    first = installation.start_operator()
    second = installation.start_operator(wait=False, OPERATOR_PORT=str(first.port))
    wait_for(lambda: not second.is_running)

    assert second.popen.returncode == 4
    assert f"port {first.port}" in second.said
