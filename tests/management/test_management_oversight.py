"""Management beside what else watches and decides: the audit log, commits, and a plug-in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from managed_office import ManagedOffice

from headwater.access import AccessQuestion, AccessSubject, Privilege, SecurableKind


class ListingPlugin:
    """Allows to list catalogs and to read ``vault``."""

    def __init__(self, file: str) -> None:
        self.file = file

    def decide(self, subject: AccessSubject, questions: Sequence[AccessQuestion]) -> Sequence[bool]:
        for question in questions:
            assert question.on.kind is SecurableKind.CATALOG and question.reference.name == "main"
        return [
            question.privilege is Privilege.CATALOG_LIST
            or (question.privilege is Privilege.CATALOG_READ_PROPERTIES and question.on.catalog == "vault")
            for question in questions
        ]


@pytest.fixture
def plugin_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Installed as pip would."""
    info = tmp_path / "site" / "listing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: listing\nVersion: 1.0\n", encoding="ascii")
    (info / "entry_points.txt").write_text(f"[headwater.access]\nlisting = {__name__}:ListingPlugin\n", encoding="ascii")
    monkeypatch.syspath_prepend(str(info.parent))
    return "listing"


def test_plugin_decides_about_catalogs_and_grants_about_the_rest(tmp_path: Path, plugin_name: str) -> None:
    office = ManagedOffice.opened(tmp_path / "keys", access=plugin_name)
    ann, root = office.token("ann"), office.token("root")
    ask = {
        (who, path): office.call("GET", f"/realms/acme{path}", token=token).status
        for who, token in {"ann": ann, "root": root}.items()
        for path in ("/catalogs/vault", "/catalogs/lake", "/catalogs/lake/roles", "/tasks", "/principals")
    }
    listed = office.call("GET", "/realms/acme/catalogs", token=ann).data["catalogs"]
    explained = office.call("GET", "/realms/acme/access?privilege=CATALOG_DROP&catalog=lake", token=root)
    office.close()

    assert [catalog["name"] for catalog in listed] == ["lake", "vault"]
    assert list(ask.values()) == [200, 403, 403, 200, 403, 200, 403, 200, 200, 200]
    assert explained.status == 400 and "a plug-in decides here about catalogs" in explained.message


def test_audit_log_tells_every_check(tmp_path: Path) -> None:
    office = ManagedOffice.opened(tmp_path / "keys", audit_file=str(tmp_path / "audit"))
    made = office.call("POST", "/realms/acme/principals", {"name": "etl"}, token=office.token("root"))
    for path in ("/principals", "/catalogs/lake", "/catalogs/vault"):
        office.call("GET", f"/realms/acme{path}", token=office.token("ann"))
    office.close()
    text = (tmp_path / "audit").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]

    assert [(line["principal"], line["action"], line["outcome"]) for line in lines] == [
        ("root", "createPrincipal", "done"),
        ("ann", "listPrincipals", "denied"),
        ("ann", "getCatalog", "denied"),
        ("ann", "getCatalog", "not-found"),
    ]
    assert [line["on"][-1] for line in lines] == [
        {"privilege": "SERVICE_MANAGE_ACCESS", "securable": "acme", "held": True},
        {"privilege": "SERVICE_MANAGE_ACCESS", "securable": "acme", "held": False},
        {"privilege": "CATALOG_READ_PROPERTIES", "securable": "acme/lake", "held": False},
        {"privilege": "CATALOG_LIST", "securable": "acme/vault", "held": False},
    ]
    assert made.data["credentials"]["clientSecret"] not in text
