"""The client of the Kubernetes API: what it sends, what it makes of answers, and what it never says."""

from __future__ import annotations

import base64
import json
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from answer_server import Answering, answering, status

from headwater.errors import FencedError, HeadwaterError, NotFoundError, RefusedError, SwapConflictError
from headwater_operator.kube import (
    ApiUnavailableError,
    KubeApi,
    KubeTimeouts,
    cluster_connection,
    connect_cluster,
    kubeconfig_connection,
    plain_connection,
    resource_path,
)

PATH = resource_path("Realm", "default", "acme")
COLLECTION = resource_path("Realm", "default", None)


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering() as started:
        yield started


@pytest.fixture
def api(server: Answering) -> Iterator[KubeApi]:
    connection = plain_connection(server.url)
    yield KubeApi(connection, sleep=lambda seconds: None)
    connection.close()


def raised_by(api: KubeApi, answer: tuple[Any, ...], server: Answering, **options: Any) -> HeadwaterError:
    server.script(answer)
    with pytest.raises(HeadwaterError) as raised:
        api.patch_resource(PATH, {}, **{"kind": "merge", **options})
    return raised.value


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("Realm", "default", "acme"), "/apis/headwater.dev/v1alpha1/namespaces/default/realms/acme"),
        (("Catalog", None, None), "/apis/headwater.dev/v1alpha1/catalogs"),
        (("secrets", "default", "s"), "/api/v1/namespaces/default/secrets/s"),
        (("Lease", "a", "b"), "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"),
        (("Realm", "a", "b", "status"), "/apis/headwater.dev/v1alpha1/namespaces/a/realms/b/status"),
        (("Namespace", None, "kube-system"), "/api/v1/namespaces/kube-system"),
        (("Realm", "a", "../b"), "/apis/headwater.dev/v1alpha1/namespaces/a/realms/..%2Fb"),
    ],
)
def test_each_kind_has_its_path(arguments: tuple[Any, ...], path: str) -> None:
    assert resource_path(*arguments) == path


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(RefusedError, match="Widget"):
        resource_path("Widget", "default", "a")


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", RefusedError),
        (401, "Unauthorized", ApiUnavailableError),
        (403, "Forbidden", RefusedError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", SwapConflictError),
        (410, "Expired", NotFoundError),
        (415, "UnsupportedMediaType", RefusedError),
        (422, "Invalid", RefusedError),
        (429, "TooManyRequests", ApiUnavailableError),
        (500, "InternalError", ApiUnavailableError),
        (503, "ServiceUnavailable", ApiUnavailableError),
    ],
)
def test_answer_becomes_the_error_that_says_what_to_do_next(
    api: KubeApi, server: Answering, code: int, reason: str, error: type[HeadwaterError]
) -> None:
    raised = raised_by(api, status(code, reason, "the server's words"), server)

    assert type(raised) is error
    assert str(raised) == f"PATCH {PATH}: the server's words ({code})"


def test_json_patch_whose_test_failed_has_lost_a_race(api: KubeApi, server: Answering) -> None:
    refusal = (422, {"kind": "Status", "message": "the server rejected our request", "reason": "Invalid", "details": {}})

    assert type(raised_by(api, refusal, server, kind="json")) is SwapConflictError


def test_json_patch_that_breaks_the_schema_is_refused(api: KubeApi, server: Answering) -> None:
    refusal = status(422, "Invalid", "spec.id: Required value", causes=[{"field": "spec.id"}])

    assert type(raised_by(api, refusal, server, kind="json")) is RefusedError


def test_server_that_is_busy_says_when_to_come_back(api: KubeApi, server: Answering) -> None:
    raised = raised_by(api, (*status(429, "TooManyRequests", "busy"), {"Retry-After": "7"}), server)

    assert isinstance(raised, ApiUnavailableError)
    assert (raised.code, raised.retry_after) == (429, 7.0)


def test_time_to_come_back_may_stand_in_the_body(api: KubeApi, server: Answering) -> None:
    raised = raised_by(api, status(429, "TooManyRequests", "busy", retryAfterSeconds=3), server)

    assert isinstance(raised, ApiUnavailableError) and raised.retry_after == 3.0


def test_read_waits_a_little_for_a_busy_server(server: Answering) -> None:
    waits: list[float] = []
    server.script((*status(429, "TooManyRequests", "busy"), {"Retry-After": "1"}), (200, {"kind": "Realm"}))
    connection = plain_connection(server.url)
    found = KubeApi(connection, sleep=waits.append).get_resource(PATH)
    connection.close()

    assert (found, waits) == ({"kind": "Realm"}, [1.0])


def test_read_does_not_wait_for_ever(server: Answering) -> None:
    waits: list[float] = []
    server.script((*status(429, "TooManyRequests", "busy"), {"Retry-After": "1"}))
    connection = plain_connection(server.url)
    with pytest.raises(ApiUnavailableError):
        KubeApi(connection, sleep=waits.append).get_resource(PATH)
    connection.close()

    assert waits == [1.0, 1.0]


def test_write_is_sent_once_whatever_happens(api: KubeApi, server: Answering) -> None:
    raised_by(api, (*status(429, "TooManyRequests", "busy"), {"Retry-After": "0"}), server)
    server.script(None)
    with pytest.raises(ApiUnavailableError, match="no answer"):
        api.create_resource(COLLECTION, {})

    assert [asked.method for asked in server.asked] == ["PATCH", "POST"]


def test_read_outlives_a_connection_that_had_gone_stale(api: KubeApi, server: Answering) -> None:
    server.script((200, {"kind": "Realm"}), None, (200, {"kind": "Realm"}))
    api.get_resource(PATH)

    assert api.get_resource(PATH) == {"kind": "Realm"}


def test_server_without_a_listener_is_unavailable(server: Answering) -> None:
    connection = plain_connection("http://127.0.0.1:1")
    with pytest.raises(ApiUnavailableError, match=f"GET {PATH}: no answer"):
        KubeApi(connection).get_resource(PATH)
    connection.close()


def test_server_that_does_not_answer_in_time_is_unavailable(server: Answering) -> None:
    late = threading.Event()
    server.answer = lambda asked: (late.wait(10), (200, {}))[1]
    connection = plain_connection(server.url)
    with pytest.raises(ApiUnavailableError, match="no answer"):
        KubeApi(connection, timeouts=KubeTimeouts(1.0, 0.1)).replace_resource(PATH, {})
    late.set()
    connection.close()


def test_finding_nothing_is_no_error(api: KubeApi, server: Answering) -> None:
    server.script(status(404, "NotFound", "not found"))

    assert api.find_resource(PATH) is None


def test_collection_is_read_page_by_page(api: KubeApi, server: Answering) -> None:
    server.script(
        (200, {"items": [{"n": 1}, {"n": 2}], "metadata": {"continue": "more"}}), (200, {"items": [{"n": 3}], "metadata": {}})
    )
    found = api.list_resources(COLLECTION, label_selector="a=b")

    assert [item["n"] for item in found] == [1, 2, 3]
    assert [asked.parameters.get("continue") for asked in server.asked] == [None, "more"]
    assert {asked.parameters["labelSelector"] for asked in server.asked} == {"a=b"}


def test_collection_that_changed_too_much_between_pages_is_read_again(api: KubeApi, server: Answering) -> None:
    server.script(
        (200, {"items": [{"n": 1}], "metadata": {"continue": "more"}}),
        status(410, "Expired", "too old"),
        (200, {"items": [{"n": 2}], "metadata": {}}),
    )

    assert api.list_resources(COLLECTION) == [{"n": 2}]


def test_pages_of_metadata_are_asked_for_as_such(api: KubeApi, server: Answering) -> None:
    server.script((200, {"items": [{"n": 1}], "metadata": {"continue": "more"}}), (200, {"items": [{"n": 2}], "metadata": {}}))

    assert list(api.pages(COLLECTION, metadata_only=True)) == [[{"n": 1}], [{"n": 2}]]
    assert {asked.headers["Accept"].partition(";g=")[0] for asked in server.asked} == {
        "application/json;as=PartialObjectMetadataList"
    }


def test_pages_whose_state_is_gone_are_unavailable(api: KubeApi, server: Answering) -> None:
    server.script((200, {"items": [{"n": 1}], "metadata": {"continue": "more"}}), status(410, "Expired", "too old"))

    with pytest.raises(ApiUnavailableError):
        list(api.pages(COLLECTION))


def test_watch_is_open_before_it_says_anything(api: KubeApi, server: Answering) -> None:
    server.answer = lambda asked: (200, b"", {"Content-Length": "1000"})

    api.open_watch(COLLECTION, {"timeoutSeconds": "600"})

    assert [asked.parameters for asked in server.asked] == [{"watch": "true", "timeoutSeconds": "600"}]


def test_apply_names_its_manager_and_takes_fields_from_others(api: KubeApi, server: Answering) -> None:
    api.patch_resource(f"{PATH}/status", {"status": {}}, kind="apply", dry_run=True)

    (asked,) = server.asked
    assert asked.parameters == {"fieldManager": "headwater-operator", "force": "true", "dryRun": "All"}
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"


def test_deletion_names_the_resource_and_minds_no_absence(api: KubeApi, server: Answering) -> None:
    server.script(status(404, "NotFound", "not found"))
    api.delete_resource(PATH, uid="one", propagation="Background")

    (asked,) = server.asked
    assert asked.body["preconditions"] == {"uid": "one"}
    assert asked.body["propagationPolicy"] == "Background"


def test_each_request_is_told_with_verb_code_and_seconds(server: Answering) -> None:
    told: list[tuple[str, int]] = []
    connection = plain_connection(server.url)
    api = KubeApi(connection, observe=lambda verb, code, seconds: told.append((verb, code)))
    api.list_resources(COLLECTION)
    api.create_resource(COLLECTION, {})
    server.script(None)
    with pytest.raises(ApiUnavailableError):
        api.delete_resource(PATH)
    connection.close()

    assert told == [("list", 200), ("create", 200), ("delete", 0)]


def test_fence_stops_writes_and_lets_reads_pass(server: Answering) -> None:
    def fence() -> None:
        raise FencedError("another leads")

    connection = plain_connection(server.url)
    api = KubeApi(connection, fence=fence)
    api.get_resource(PATH)
    for write in (
        lambda: api.create_resource(COLLECTION, {}),
        lambda: api.replace_resource(PATH, {}),
        lambda: api.delete_resource(PATH),
    ):
        with pytest.raises(FencedError):
            write()
    connection.close()

    assert [asked.method for asked in server.asked] == ["GET"]


def test_fence_is_asked_after_the_wait_for_a_token(server: Answering) -> None:
    order: list[str] = []

    class Bucket:
        def reserve_token(self) -> None:
            order.append("token")

    connection = plain_connection(server.url)
    KubeApi(connection, bucket=Bucket(), fence=lambda: order.append("fence")).create_resource(COLLECTION, {})
    connection.close()

    assert order == ["token", "fence"]


def test_threads_share_connections(api: KubeApi, server: Answering) -> None:
    threads = [threading.Thread(target=lambda: [api.get_resource(PATH) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(server.asked) == 160


@pytest.mark.parametrize("place", ["data", "stringData"])
def test_error_about_a_secret_does_not_quote_it(api: KubeApi, server: Answering, place: str) -> None:
    value = base64.b64encode(b"hush-hush").decode()
    server.answer = lambda asked: status(422, "Invalid", f"Invalid value: {json.dumps(asked.body)} (hush-hush)")
    body = {"kind": "Secret", place: {"clientSecret": value if place == "data" else "hush-hush"}}
    with pytest.raises(RefusedError) as refused:
        api.create_resource(resource_path("Secret", "default", None), body)

    assert "hush-hush" not in str(refused.value) and value not in str(refused.value)
    assert "(hidden)" in str(refused.value)


def test_page_of_a_proxy_is_not_quoted(api: KubeApi, server: Answering) -> None:
    raised = raised_by(api, (502, b"<html>bad gateway, token=abc</html>"), server)

    assert str(raised) == f"PATCH {PATH}: Bad Gateway (502)"


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_token_of_the_kubeconfig_is_sent(server: Answering, tmp_path: Path) -> None:
    connection = kubeconfig_connection(kubeconfig(tmp_path, server.url, {"token": "abc"}))
    KubeApi(connection).get_resource(PATH)
    connection.close()

    assert server.asked[0].headers["Authorization"] == "Bearer abc"


def test_exec_plugin_is_asked_again_when_its_token_is_refused(server: Answering, tmp_path: Path) -> None:
    plugin, count = tmp_path / "plugin", tmp_path / "count"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, pathlib\n"
        f"count = pathlib.Path({str(count)!r}); n = len(count.read_text()) if count.exists() else 0; count.write_text('x' * (n + 1))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status': {'token': f't{n}'}}))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IEXEC)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}}
    connection = kubeconfig_connection(kubeconfig(tmp_path, server.url, user))
    server.answer = lambda asked: (
        (200, {}) if asked.headers["Authorization"] == "Bearer t1" else status(401, "Unauthorized", "Unauthorized")
    )
    KubeApi(connection).create_resource(COLLECTION, {})
    connection.close()

    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer t0", "Bearer t1"]


def test_client_certificate_of_the_kubeconfig_is_shown(certificates: dict[str, str], tmp_path: Path) -> None:
    user = {"client-certificate": certificates["certificate"], "client-key": certificates["key"]}
    with answering(**certificates, clients=certificates["certificate"]) as server:
        file = kubeconfig(tmp_path, server.url, user, **{"certificate-authority": certificates["certificate"]})
        connection = kubeconfig_connection(file)
        found = KubeApi(connection).get_resource("/version")
        connection.close()

    assert found == {}


def test_server_without_the_authoritys_word_is_not_talked_to(certificates: dict[str, str], tmp_path: Path) -> None:
    with answering(**certificates) as server:
        connection = kubeconfig_connection(kubeconfig(tmp_path, server.url, {"token": "abc"}))
        with pytest.raises(ApiUnavailableError, match="certificate"):
            KubeApi(connection).get_resource("/version")
        connection.close()

        assert server.asked == []


def test_pod_reads_its_token_again_after_a_refusal(certificates: dict[str, str], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    with answering(**certificates) as server:
        host, port = server.url.removeprefix("https://").split(":")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        connection = cluster_connection(environment, token=str(token), certificate=certificates["certificate"])
        server.answer = lambda asked: (
            (200, {}) if asked.headers["Authorization"].endswith("new") else status(401, "Unauthorized", "Unauthorized")
        )
        token.write_text("new")
        KubeApi(connection).replace_resource(PATH, {})
        connection.close()

        assert [asked.headers["Authorization"] for asked in server.asked] == ["bearer old", "bearer new"]
        assert (connection.credentials().scheme, connection.credentials().token) == ("Bearer", "new")


def test_no_cluster_at_all_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no cluster to talk to"):
        connect_cluster(environment={"KUBECONFIG": str(tmp_path / "nothing")})


@pytest.mark.parametrize("text", ["token: [secret-token", "users: [{token: secret-token}]\nkind: Config\n", "- secret-token"])
def test_broken_kubeconfig_is_not_quoted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(RefusedError) as refused:
        kubeconfig_connection(str(file))

    assert "secret-token" not in str(refused.value)


def test_unknown_context_is_refused_without_quoting_tokens(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1", {"token": "secret-token"})
    with pytest.raises(RefusedError, match="elsewhere") as refused:
        kubeconfig_connection(file, "elsewhere")

    assert "secret-token" not in str(refused.value)
