"""`kubectl headwater purge`: shows what goes, asks, and only then deletes; follows; calls off."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plugin_bodies import realm_status
from plugin_calls import Lakes, Plugin

CONFIRM = "headwater.dev/confirm-purge"

Body = dict[str, Any]


def is_asked_for(found: Body) -> bool:
    confirmed = found["metadata"].get("annotations", {}).get(CONFIRM) == "acme"
    return confirmed and found["spec"]["deletionPolicy"] == "Purge" and "deletionTimestamp" in found["metadata"]


def test_purge_shows_what_goes_and_waits_for_a_word(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    lakes.make_catalog()

    said = plugin.refused(5, "purge", "acme")
    assert [line.split()[:2] for line in said.splitlines()[1:5]] == [
        ["realm", "id:"],
        ["state:", "ACTIVE"],
        ["catalogs:", "1"],
        ["tables:", "14"],
    ]
    assert "1 Catalog resource will wait for a realm that is gone: lake" in said
    assert "deletionTimestamp" not in lakes.read()["metadata"]


def test_purge_is_confirmed_by_the_realms_id(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    plugin.ok("purge", "acme", "--confirm", "acme")

    assert is_asked_for(lakes.read())


def test_another_word_does_nothing(plugin: Plugin, lakes: Lakes) -> None:
    before = lakes.make_realm(held=True)

    assert "the realm's id is 'acme'" in plugin.refused(5, "purge", "acme", "--confirm", "amce")
    assert lakes.read() == before


def test_id_counts_and_not_the_name(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True, status=realm_status("Acme_1"), realmId="Acme_1")

    assert "the realm's id is 'Acme_1'" in plugin.refused(5, "purge", "acme", "--confirm", "acme")


@pytest.mark.long
@pytest.mark.parametrize(("typed", "code", "is_asked"), [("acme", 0, True), ("yes", 5, False)])
def test_person_types_the_realms_id(lakes: Lakes, typed: str, code: int, is_asked: bool) -> None:
    lakes.make_realm(held=True)
    cluster, (ours, theirs) = lakes.namespace.cluster, pty.openpty()
    program = str(Path(sys.executable).with_name("kubectl-headwater"))
    os.write(ours, f"{typed}\n".encode())
    command = [program, "purge", "acme", "-n", lakes.name]
    done = subprocess.run(command, env=cluster.environment, stdin=theirs, capture_output=True, text=True, check=False)
    os.close(ours)
    os.close(theirs)

    assert (done.returncode, is_asked_for(lakes.read())) == (code, is_asked), done.stderr


def test_protected_realm_is_refused_with_what_to_do(plugin: Plugin, lakes: Lakes) -> None:
    before = lakes.make_realm(held=True, deletionProtection=True)

    said = plugin.refused(5, "purge", "acme", "--confirm", "acme")
    assert f"kubectl patch realm acme -n {lakes.name} --type merge" in said
    assert lakes.read() == before


def test_purge_broken_off_goes_on_with_the_same_command(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    plugin.ok("purge", "acme", "--confirm", "acme")
    plugin.ok("purge", "acme", "--confirm", "acme")

    assert is_asked_for(lakes.read())


def test_purge_is_followed_until_the_realm_is_gone(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    steps = iter(
        [
            realm_status(state="INACTIVE", purge={"holdUntil": "2026-11-23T12:00:00Z"}),
            realm_status(state="PURGING", purge={"rowsDeleted": 60, "rowsRemaining": 40}),
        ]
    )

    def purge(found: Body) -> bool:
        if not is_asked_for(found):
            return False
        status = next(steps, None)
        lakes.let_go() if status is None else lakes.set_status(status)
        return status is None

    with lakes.watched(purge):
        said = plugin.ok("purge", "acme", "--confirm", "acme", "--wait")
    assert said.splitlines()[-1] == "realm/acme: gone, with everything in it"


def test_following_ends_when_somebody_calls_it_off(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)

    def call_off(found: Body) -> bool:
        if is_asked_for(found):
            lakes.namespace.kubectl("patch", "realm", "acme", "--type=merge", "-p", '{"spec":{"deletionPolicy":"Retain"}}')
        return is_asked_for(found)

    with lakes.watched(call_off):
        assert "was called off" in plugin.refused(5, "purge", "acme", "--confirm", "acme", "--wait")


def test_purge_is_called_off_by_keeping_the_realm(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(held=True)
    plugin.ok("purge", "acme", "--confirm", "acme")

    assert "the realm acme stays in the store" in plugin.ok("purge", "acme", "--cancel")
    found = lakes.read()
    assert (found["spec"]["deletionPolicy"], CONFIRM in found["metadata"].get("annotations", {})) == ("Retain", False)


@pytest.mark.parametrize("state", ["PURGING", "PURGED"])
def test_purge_cannot_be_called_off_once_rows_go(plugin: Plugin, lakes: Lakes, state: str) -> None:
    before = lakes.make_realm(status=realm_status(state=state), deletionPolicy="Purge")

    assert "cannot be called off any more" in plugin.refused(5, "purge", "acme", "--cancel")
    assert lakes.read() == before
