"""The server's metrics: requests by route, changes by outcome, and how much there is to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asgi_client import AsgiClient
from headwater.realms import RealmRegistry
from headwater_server.server_application import ServerApplication
from headwater_server.server_metrics import SERVER_CATALOGUE

NO_COMMITS = dict.fromkeys(("done", "conflict", "refused", "unavailable", "unknown"), 0.0)
"""What Prometheus needs to see the first of each as an increase."""


def samples(client: AsgiClient) -> dict[str, float]:
    lines = client.request("GET", "/metrics").content.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def commits(client: AsgiClient) -> dict[str, float]:
    prefix = 'headwater_server_commits_total{outcome="'
    found = samples(client).items()
    return {name.removeprefix(prefix).removesuffix('"}'): count for name, count in found if name.startswith(prefix)}


def test_every_outcome_begins_with_0(client: AsgiClient) -> None:
    assert commits(client) == NO_COMMITS


def test_requests_are_counted_by_route(client: AsgiClient) -> None:
    for target in ("/api/v1/things/a", "/api/v1/things/b", "/nowhere/1", "/nowhere/2"):
        client.request("GET", target)

    found = samples(client)
    assert found['headwater_server_requests_total{code="200",route="readThing"}'] == 2
    assert found['headwater_server_requests_total{code="404",route="none"}'] == 2
    assert found['headwater_server_request_seconds_count{route="readThing"}'] == 2


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("conflict", "conflict"),
        ("refused", "refused"),
        ("missing", "refused"),
        ("unavailable", "unavailable"),
        ("unknown", "unknown"),
        ("bug", "unknown"),
    ],
)
def test_changes_are_counted_by_outcome(client: AsgiClient, error: str, outcome: str) -> None:
    client.request("POST", f"/api/v1/things/a/errors/{error}")
    client.request("POST", "/api/v1/things", b'{"name": "a"}')

    assert commits(client) == {**NO_COMMITS, outcome: 1, "done": 1}


def families(client: AsgiClient) -> Iterator[tuple[str, str]]:
    client.request("POST", "/api/v1/things", b'{"name": "a"}')
    for line in client.request("GET", "/metrics").content.decode().splitlines():
        if line.startswith("# TYPE headwater_server_"):
            _, _, name, kind = line.split()
            yield name, kind


def test_catalogue_has_every_metric(client: AsgiClient) -> None:
    assert sorted(families(client)) == sorted((metric.name, metric.type) for metric in SERVER_CATALOGUE)


def test_commits_are_counted_beside_their_groups(client: AsgiClient, application: ServerApplication) -> None:
    def counts() -> tuple[float, ...]:
        found = samples(client)
        return tuple(found[f"headwater_server_{name}_total"] for name in ("commit_groups", "grouped_commits"))

    before = counts()
    RealmRegistry(application.served.store).create_realm("acme")

    assert [after > earlier for after, earlier in zip(counts(), before, strict=True)] == [True, True]
