"""What somebody may put into a resource, or do at the worst moment: others' realms stay out of sight, nothing is lost, and work goes on."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from desks import API, Desk, make_catalog, make_realm

from headwater_operator.resource.credentials_secret import secret_name
from headwater_operator.runtime.informer_cache import ResourceKey
from kubetest import Namespace

WRONG = {"headwater.dev/unheard-of": "yes"}
OF_A_REALM = {"state", "realmKey", "catalogs", "tables", "maintenance", "purge", "credentialsSecret"}
OF_A_CATALOG = {"catalogId", "tables", "namespaces"}
QUESTIONS = {
    "deep text": '{"token": "a", "spec": ' + "[" * 20_000 + "]" * 20_000 + "}",
    "deep spec": '{"token": "a", "spec": ' + '{"properties": ' * 700 + "1" + "}" * 700 + "}",
    "half a character": '{"token": "a", "spec": {"maintenance": {"timeZone": "\\ud800"}}}',
    "half a character as token": '{"token": "\\ud800", "spec": {"state": "Sleepy"}}',
    "many digits": '{"token": "a", "spec": {"purgeHold": "' + "1" * 5_000 + 'd"}}',
    "long duration": '{"token": "a", "spec": {"purgeHold": "' + "1" * 400 + 'd"}}',
}


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm and a Catalog, both ready."""
    desk.apply(make_realm(), make_catalog())
    desk.work()
    desk.go_on(3)
    assert desk.is_ready("Realm", "acme")
    assert desk.is_ready("Catalog", "sales")
    return desk


@pytest.fixture
def other(namespace: Namespace) -> Namespace:
    return namespace.cluster.make_namespace("other")


def metrics_of(desk: Desk) -> str:
    desk.metrics.sources.is_leading = lambda: True
    text: str = desk.metrics.render().decode()
    return text


def secret_of(desk: Desk) -> dict[str, str]:
    data: dict[str, str] = desk.namespace.read("Secret", "acme-root-credentials")["data"]
    return data


# What a resource says of others


def test_wrong_resource_shows_nothing_of_anothers_realm(ready: Desk, other: Namespace, make_desk: Callable[..., Desk]) -> None:
    rival = make_desk()
    rival.namespace = other
    rival.apply(make_realm("rival", annotations=WRONG, realmId="acme"))

    rival.work()

    assert rival.reason("Realm", "rival", "Accepted") == ("False", "SpecInvalid")
    assert not OF_A_REALM & rival.status("Realm", "rival").keys()
    assert not rival.status("Realm", "rival").get("tasks")


def test_wrong_resource_shows_nothing_of_anothers_catalog(
    ready: Desk, other: Namespace, make_desk: Callable[..., Desk]
) -> None:
    rival = make_desk()
    rival.namespace = other
    rival.apply(make_realm("rival", realmId="acme"), make_catalog("sales", "rival", annotations=WRONG))

    rival.work()

    assert rival.reason("Catalog", "sales", "Accepted") == ("False", "SpecInvalid")
    assert not OF_A_CATALOG & rival.status("Catalog", "sales").keys()


def test_wrong_resource_still_shows_its_own(ready: Desk) -> None:
    ready.annotate("Realm", "acme", unheard_of="yes")
    ready.annotate("Catalog", "sales", unheard_of="yes")

    ready.work()

    assert ready.reason("Realm", "acme", "Accepted") == ("False", "SpecInvalid")
    assert ready.status("Realm", "acme")["state"] == "ACTIVE"
    assert ready.reason("Catalog", "sales", "Accepted") == ("False", "SpecInvalid")
    assert "catalogId" in ready.status("Catalog", "sales")


# What comes and goes


def test_realm_let_go_is_in_no_metric_any_more(ready: Desk) -> None:
    assert 'realm="acme"' in metrics_of(ready)
    ready.delete("Realm", "acme")

    ready.work()

    assert ready.namespace.find("Realm", "acme") is None
    assert 'realm="acme"' not in metrics_of(ready)


def test_realm_that_another_resource_took_over_stays_in_the_metrics(ready: Desk) -> None:
    ready.apply(make_realm("rival", annotations={"headwater.dev/adopt": "acme"}, realmId="acme"))
    ready.go_on(600, step=60)
    ready.delete("Realm", "acme")

    ready.work()

    assert ready.is_ready("Realm", "rival")
    assert 'realm="acme"' in metrics_of(ready)


def test_resource_made_again_while_forgotten_is_looked_after(ready: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    key, drop = ResourceKey("Catalog", ready.namespace.name, "sales"), ready.queue.drop
    made: list[Any] = []

    def drop_late(dropped: ResourceKey) -> None:
        """The watch tells of the new one between the look into the cache and this."""
        if not made:
            ready.apply(make_catalog())
            made.append(ready.namespace.read("Catalog", "sales"))
            assert ready.cache.update_resource("ADDED", made[0])
            ready.queue.enqueue(key)
        drop(dropped)

    monkeypatch.setattr(ready.queue, "drop", drop_late)
    ready.delete("Catalog", "sales")
    ready.work()

    assert made
    assert ready.is_ready("Catalog", "sales")


def test_path_not_found_for_a_moment_keeps_its_resource(ready: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ready.http.request
    failed: list[str] = []

    def lose_one(method: str, url: str, **others: Any) -> Any:
        if method != "PATCH" or "/realms/acme/status" not in url or failed:
            return request(method, url, **others)
        failed.append(url)
        said = {"kind": "Status", "message": "the server could not find the requested resource", "code": 404}
        return urllib3.HTTPResponse(json.dumps(said).encode(), status=404)

    monkeypatch.setattr(ready.http, "request", lose_one)
    ready.apply(make_realm(state="Inactive"))
    ready.look()
    key = ready.queue.take_key(timeout=0)
    assert key is not None and key.name == "acme"
    ready.reconciler.reconcile(key)
    ready.queue.mark_done(key)

    assert failed
    assert ready.cache.find_resource(key) is not None
    ready.go_on(5)
    assert ready.status("Realm", "acme")["state"] == "INACTIVE"


def test_conditions_of_others_do_not_hinder_a_deletion(ready: Desk) -> None:
    blessing = {"type": "Blessed", "status": "True", "reason": "ByThePriest", "message": ""}
    body = {
        "apiVersion": API,
        "kind": "Realm",
        "metadata": {"name": "acme"},
        "status": {"conditions": [{**blessing, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }
    path = ready.namespace.path("Realm", "acme") + "/status"
    ready.namespace.cluster.api.patch_resource(path, body, kind="apply", manager="a-priest")
    ready.delete("Realm", "acme")

    ready.work()

    assert "RealmDetached" in [reason for reason, _ in ready.namespace.events("acme", kind="Realm")]
    assert 'outcome="error"' not in metrics_of(ready)


# What is too much


@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS)
def test_question_that_nobody_means_is_answered(ready: Desk, text: str) -> None:
    ready.annotate("Realm", "acme", plan=text)

    ready.work()

    assert [line.partition(":")[0] for line in ready.status("Realm", "acme")["plan"]["refused"]] == ["SpecInvalid"]
    assert 'outcome="error"' not in metrics_of(ready)


def test_word_that_is_a_novel_is_refused(ready: Desk) -> None:
    ready.annotate("Realm", "acme", run_now="gc:" + "word" * 10_000)

    ready.work()

    assert ready.reason("Realm", "acme", "Accepted") == ("False", "SpecInvalid")


def test_realm_with_the_longest_name_has_a_secret(desk: Desk) -> None:
    name = "a" * 253
    desk.apply(make_realm(name, realmId="long"))

    desk.work()

    assert desk.is_ready("Realm", name)
    assert desk.namespace.find("Secret", desk.status("Realm", name)["credentialsSecret"]) is not None


def test_names_of_secrets_are_valid_and_differ() -> None:
    assert secret_name("acme") == "acme-root-credentials"
    long = [secret_name(f"{'a' * 219}.{'b' * 30}{end}") for end in ("x", "y")]
    assert long[0] != long[1]
    assert all(len(name) <= 253 and ".-" not in name for name in long)


# Credentials


def test_word_that_rotated_before_makes_no_credentials(ready: Desk) -> None:
    ready.annotate("Realm", "acme", rotate_credentials="now")
    ready.work()
    first = secret_of(ready)
    ready.annotate("Realm", "acme", rotate_credentials=None)
    ready.work()

    ready.annotate("Realm", "acme", rotate_credentials="now")
    ready.work()

    assert secret_of(ready) == first
    assert 'headwater_operator_events_total{reason="CredentialsRotated"} 1.0' in metrics_of(ready)


TELL_OF_A_BUG = """
from headwater.settings import Settings
from {module} import {configure}
import structlog

def hash_something(client_secret):
    raise KeyError("a bug")

{configure}(Settings())
try:
    hash_something("".join(["hush", "-", "hush"]))
except KeyError:
    structlog.get_logger("{module}").exception("a pass ended in a bug")
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "configure"),
    [
        ("headwater_operator.runtime.operator_logs", "configure_operator_logs"),
        ("headwater_workers.celery_app", "configure_worker_logs"),
    ],
)
def test_log_of_a_bug_shows_no_values_of_variables(module: str, configure: str) -> None:
    command = [sys.executable, "-c", TELL_OF_A_BUG.format(module=module, configure=configure)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr

    assert logging.getLevelName(logging.ERROR).lower() in said
    assert "KeyError" in said
    assert "hush-hush" not in said
