"""`kubectl headwater report`: everything that helps, and not one byte of a secret."""

from __future__ import annotations

import base64
import json
import stat
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from plugin_bodies import NOW, catalog_body, catalog_status, realm_body, realm_status, with_identity
from plugin_calls import Lakes, Plugin

from headwater_operator.plugin.support_bundle import BundleContents, archive, bundle_files, gather

Body = dict[str, Any]

SECRETS = {
    "property": "hunter2-property",
    "nested property": "swordfish/und mehr",
    "environment": "q6Rk1zW0yVb3nXc8-environment",
    "plain environment": "opensesame",
    "argument": "tr0ub4dor-argument",
    "annotation": "zx81-annotation",
    "json in an annotation": "c64-annotation",
    "url": "p@ssw0rd/in:url",
    "url of a location": "pa55-location",
    "message of a condition": "m3ssage-password",
    "message of an event": "ev3nt-token",
    "log": "l0g-secret",
    "log as json": "j50n-log-secret",
    "key": "MIIEpAIBAAKCAQEA7",
    "access key": "AKIAIOSFODNN7EXAMPLE",
    "bearer": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhY21lIn0.c2lnbmF0dXJl",
    "credentials": "Zb4-kq1V9xPzR7tYw2LmN8sDfG6hJ0cQeUaT3oIiB5E",
}


def planted(name: str = "acme") -> tuple[Body, Body]:
    """A Realm and a Catalog with secrets wherever a person could have put one."""
    s = SECRETS
    annotations = {
        "example.com/password": s["annotation"],
        "example.com/config": json.dumps({"inner": {"apiKey": s["json in an annotation"]}}),
        "headwater.dev/plan": json.dumps({"token": "1", "spec": {"properties": {"s3.secret-access-key": s["property"]}}}),
    }
    properties = {"s3.secret-access-key": s["property"], "note": f"see {s['property']}", "gcs.token": s["nested property"]}
    realm = realm_body(name, annotations, properties=properties)
    storage = {"baseLocation": f"s3://reader:{s['url of a location']}@lake/tables"}
    catalog = catalog_body("lake", name, storage=storage, properties={"jdbc": f"postgresql://u:{s['url']}@db/lake"})
    return realm, catalog


def status_with_secrets() -> Body:
    s = SECRETS
    status = realm_status()
    status["conditions"][0] |= {"message": f"cannot log in: password={s['message of a condition']}", "status": "False"}
    status["message"] = f"no access for {s['access key']}, sent Bearer {s['bearer']}; {quote(s['url'], safe='')} was tried"
    return status


def pod() -> Body:
    s = SECRETS
    container = {
        "name": "operator",
        "image": "headwater-operator:0.1.0",
        "args": ["run", "--store-password", s["argument"], f"--url=redis://:{s['url']}@redis/0"],
        "env": [
            {"name": "HEADWATER_STORE_PASSWORD", "value": s["environment"]},
            {"name": "HARMLESS", "value": s["plain environment"]},
            {"name": "HEADWATER_STORE", "valueFrom": {"secretKeyRef": {"name": "headwater-store", "key": "url"}}},
        ],
    }
    metadata = {"name": "operator-1", "labels": {"app.kubernetes.io/part-of": "headwater"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def log_with_secrets() -> str:
    s = SECRETS
    return (
        f"connecting with password={s['log']}\n"
        f"{json.dumps({'event': 'refused', 'clientSecret': s['log as json'], 'kind': 'Realm'})}\n"
        f"-----BEGIN RSA PRIVATE KEY-----\n{s['key']}\n-----END RSA PRIVATE KEY-----\n"
        f"{s['property']} and {s['environment']} were wrong, so was {s['credentials']}\n"
    )


def event() -> Body:
    about = {"kind": "Realm", "name": "acme", "namespace": "lakes", "uid": "uid-1"}
    metadata = {"name": "acme.1", "namespace": "lakes"}
    return {
        "metadata": metadata,
        "involvedObject": about,
        "reason": "Refused",
        "message": f"token: {SECRETS['message of an event']}",
    }


@pytest.fixture
def bundle() -> dict[str, str]:
    """A bundle of a cluster full of secrets, as files."""
    realm, catalog = planted()
    realm = with_identity(realm, **status_with_secrets())
    catalog = with_identity(catalog, uid="uid-2", **catalog_status(message=f"{SECRETS['url of a location']} did not work"))
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(planted()[0])}
    realm["metadata"]["annotations"] |= last_applied
    gathered = BundleContents(realms=[realm], catalogs=[catalog], events=[event()])
    gathered.files = {
        "realms/lakes/acme.yaml": realm,
        "catalogs/lakes/lake.yaml": catalog,
        "workloads/pods.yaml": [pod()],
        "events.yaml": [event()],
        "logs/headwater/operator-1/operator.log": log_with_secrets(),
    }
    gathered.missing = {"leases": f"GET https://admin:{SECRETS['url']}@api/: forbidden (403)"}
    return bundle_files(gathered, NOW)


@pytest.mark.parametrize("where", SECRETS)
def test_no_byte_of_a_planted_secret_is_in_a_bundle(bundle: dict[str, str], where: str) -> None:
    secret = SECRETS[where]
    spellings = {secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), json.dumps(secret)[1:-1]}
    content = b"".join(name.encode() + text.encode() for name, text in bundle.items())

    assert [spelling for spelling in spellings if spelling.encode() in content] == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("realms/lakes/acme.yaml", "realmKey: 033f1a6b2c400001"),
        ("realms/lakes/acme.yaml", "credentialsSecret: acme-root-credentials"),
        ("workloads/pods.yaml", "name: HEADWATER_STORE_PASSWORD"),
        ("workloads/pods.yaml", "name: headwater-store"),
        ("workloads/pods.yaml", "image: headwater-operator:0.1.0"),
        ("events.yaml", "reason: Refused"),
        ("logs/headwater/operator-1/operator.log", '"event": "refused"'),
        ("catalogs/lakes/lake.yaml", "@lake/tables"),
        ("pages/lakes/acme.txt", "Realm lakes/acme: ACTIVE"),
        ("index.md", "leases: GET https://(redacted)@api/: forbidden (403)"),
    ],
)
def test_report_keeps_what_helps(bundle: dict[str, str], file: str, text: str) -> None:
    assert text in bundle[file]


def test_index_lists_every_file(bundle: dict[str, str]) -> None:
    assert [name for name in bundle if name != "index.md" and f"- {name}\n" not in bundle["index.md"]] == []


def test_everything_lies_in_one_folder_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(archive({"index.md": "x", "logs/a.log": "y"}, "report", NOW))

    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert tar.getnames() == ["report/index.md", "report/logs/a.log"]


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {name.partition("/")[2]: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]


def test_bundle_of_a_cluster_holds_its_resources_and_no_secret(plugin: Plugin, lakes: Lakes, tmp_path: Path) -> None:
    realm, catalog = planted()
    catalog["spec"]["storage"]["baseLocation"] = "s3://lake/tables"  # with a password the API server itself refuses it
    lakes.namespace.apply(realm, catalog)
    lakes.set_status(status_with_secrets())
    lakes.namespace.cluster.api.create_resource(lakes.namespace.path("Pod"), pod())
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "acme-root-credentials"}}
    encoded = {"clientSecret": base64.b64encode(SECRETS["credentials"].encode()).decode()}
    lakes.namespace.cluster.api.create_resource(lakes.namespace.path("Secret"), {**secret, "data": encoded})
    file = tmp_path / "report.tar.gz"
    plugin.ok("report", "-o", file, "--only-namespace")

    found = members(file)
    content = b"".join(found.values())
    assert {f"realms/{lakes.name}/acme.yaml", f"catalogs/{lakes.name}/lake.yaml", "versions.yaml", "index.md"} <= found.keys()
    assert [where for where, value in SECRETS.items() if value.encode() in content] == []


def test_bundle_is_readable_for_its_owner_only(plugin: Plugin, tmp_path: Path) -> None:
    plugin.ok("report", "-o", tmp_path / "report.tar.gz", "--only-namespace")

    assert stat.S_IMODE((tmp_path / "report.tar.gz").stat().st_mode) == 0o600


def test_file_that_is_there_is_not_written_over(plugin: Plugin, tmp_path: Path) -> None:
    (tmp_path / "report.tar.gz").write_text("mine")

    assert "is there already" in plugin.refused(5, "report", "-o", tmp_path / "report.tar.gz", "--only-namespace")
    assert (tmp_path / "report.tar.gz").read_text() == "mine"


def test_secrets_are_never_asked_for(plugin: Plugin, tmp_path: Path) -> None:
    asked: list[str] = []

    class Listening:
        """Notes what is asked of the API server, and passes it on."""

        def __init__(self, api: Any) -> None:
            self.api = api

        def __getattr__(self, name: str) -> Any:
            def call(path: str, *arguments: Any, **named: Any) -> Any:
                asked.append(path)
                return getattr(self.api, name)(path, *arguments, **named)

            return call

    api: Any = Listening(plugin.namespace.cluster.api)
    gather(api, namespace=None, home="default", log_lines=10)

    assert asked and not any("/secrets" in path for path in asked)
