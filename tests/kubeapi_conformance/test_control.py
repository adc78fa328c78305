"""What a test can ask of the server beside the API: its memory of requests, and failures."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from probe_client import Client, start

pytestmark = pytest.mark.long


def requests(client: Client, query: str = "") -> list[dict[str, object]]:
    return list(client.get(f"/_control/requests?namespace={client.namespace}&{query}").body["requests"])


def test_requests_are_remembered_as_what_they_asked_for(client: Client) -> None:
    client.make()
    client.patch(client.widgets + "/a/status?fieldManager=me", {"status": {"state": "X"}})

    made, patched = requests(client)

    assert (made["verb"], made["resource"], made["status"], made["wrote"]) == ("create", "widgets", 201, True)
    assert (patched["verb"], patched["subresource"], patched["name"], patched["manager"]) == ("patch", "status", "a", "me")


def test_request_that_changed_nothing_wrote_nothing(client: Client) -> None:
    client.make()
    client.patch(client.widgets + "/a", {"spec": {"size": 1}})

    assert [one["wrote"] for one in requests(client)] == [True, False]


def test_requests_can_be_asked_for_from_a_number_on(client: Client) -> None:
    client.make("a")
    (first,) = requests(client)
    client.make("b")

    assert len(requests(client, f"since={first['number']}")) == 1


def test_requests_are_counted_by_verb_and_resource_until_cleared(client: Client) -> None:
    client.ask("DELETE", "/_control/requests")
    client.make("a")
    client.make("b")

    assert client.get("/_control/counts").body["counts"]["create widgets"] == 2
    assert client.get("/_control/counts").body["writes"]["create widgets"] == 2


@pytest.mark.parametrize(
    ("action", "status", "reason"),
    [
        ("429", 429, "TooManyRequests"),
        ("500", 500, "InternalError"),
        ("503", 503, "ServiceUnavailable"),
        ("410", 410, "Expired"),
        ("409", 409, "Conflict"),
    ],
)
def test_request_can_be_made_to_fail_before_its_effect(client: Client, action: str, status: int, reason: str) -> None:
    client.fail(action=action, verb="create", resource="widgets")

    assert client.make(status=status).reason == reason
    assert client.make().status == 201


def test_client_is_told_how_long_to_wait(client: Client) -> None:
    client.fail(action="429", verb="create", retry_after=7)

    assert client.make(status=429).headers["Retry-After"] == "7"


def test_request_can_fail_after_it_took_effect(client: Client) -> None:
    client.fail(action="500-after", verb="create")
    client.make(status=500)

    assert client.get(client.widgets + "/a").status == 200


@pytest.mark.parametrize(("action", "found"), [("drop-before", 404), ("drop-after", 200)])
def test_connection_can_be_dropped_before_and_after(client: Client, action: str, found: int) -> None:
    client.fail(action=action, verb="create")

    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        client.make()
    client._connection.close()

    assert client.get(client.widgets + "/a").status == found


def test_request_can_be_made_to_wait(client: Client) -> None:
    client.fail(action="delay", seconds=0.3, verb="create")
    start = time.monotonic()

    client.make()

    assert time.monotonic() - start >= 0.3


def test_failure_befalls_whom_it_is_meant_for(client: Client) -> None:
    client.fail(action="500", verb="patch", resource="widgets", subresource="status", name="b", times=-1)
    for name in ("a", "b"):
        client.make(name)

    done = [client.patch(f"{client.widgets}/{path}", {}).status for path in ("a/status", "b", "b/status", "b/status")]

    assert done == [200, 200, 500, 500]


def test_failure_can_wait_for_its_turn(client: Client) -> None:
    client.fail(action="500", verb="create", skip=1)

    assert [client.make("a").status, client.make("b", status=500).status, client.make("b").status] == [201, 500, 201]


def test_watch_can_be_refused(client: Client) -> None:
    client.fail(action="410", verb="watch")

    assert client.watch(client.widgets).status == 410


def test_unknown_failure_is_refused(client: Client) -> None:
    assert client.post("/_control/faults", [{"action": "burn"}]).status == 400


def test_server_forgets_what_is_beyond_its_memory(small_memory: Client) -> None:
    path = small_memory.core + "/configmaps"
    version = small_memory.get(path).metadata["resourceVersion"]
    for number in range(12):
        small_memory.post(path, {"metadata": {"name": f"c{number}"}})

    (event,) = list(small_memory.watch(path, resourceVersion=version, timeoutSeconds=5))

    assert event["object"]["code"] == 410
    assert len(small_memory.get("/_control/requests").body["requests"]) == 10


def test_server_ends_with_whoever_started_it() -> None:
    tests = str(Path(__file__).parents[1])
    script = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-m', 'kubeapi'], stdout=subprocess.PIPE, text=True)\n"
        "p.stdout.readline()\n"
        "print(p.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env={"PYTHONPATH": tests}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()

    end = time.monotonic() + 10
    while is_alive(child):
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that ended and that nobody has taken note of does not."""
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].startswith(" Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_server_ends_at_sigterm(tmp_path: Path) -> None:
    process, _url = start()
    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    assert process.stdout is not None
    process.stdout.close()
