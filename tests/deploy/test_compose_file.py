"""The compose file is one, and names files, variables and times that there are."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from compose_services import DEPLOY, compose_file

from headwater import Settings
from headwater.settings import parse_duration


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return compose_file()


def test_compose_file_keeps_to_the_compose_specification(composed: dict[str, Any]) -> None:
    schema = json.loads(
        files("check_jsonschema.builtin_schemas.vendor").joinpath("compose-spec.json").read_text(encoding="utf-8")
    )

    faults = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(composed)]
    assert faults == []
    assert list(jsonschema.Draft202012Validator(schema).iter_errors({"services": {"server": {"imagge": "x"}}})) != []


def test_compose_file_has_every_part(composed: dict[str, Any]) -> None:
    assert set(composed["services"]) == {"postgresql", "redis", "server", "worker", "prometheus", "grafana"}


def test_compose_file_names_images_of_others_by_digest(composed: dict[str, Any]) -> None:
    images = [service["image"] for service in composed["services"].values() if not service["image"].startswith("headwater-")]

    assert len(images) == 4
    assert [image for image in images if not re.fullmatch(r"docker\.io/\S+:\S+@sha256:[0-9a-f]{64}", image)] == []


def test_compose_file_sets_variables_that_are_settings(composed: dict[str, Any]) -> None:
    variables = {name for service in ("server", "worker") for name in composed["services"][service]["environment"]}

    assert variables <= set(Settings.variables())


def test_compose_file_mounts_files_that_are_there(composed: dict[str, Any]) -> None:
    mounts = [volume.split(":")[0] for service in composed["services"].values() for volume in service.get("volumes", ())]
    paths = [DEPLOY / "compose" / mount for mount in mounts if mount.startswith("../")]

    assert len(paths) == 5
    assert [path for path in paths if not path.exists()] == []
    assert [mount for mount in mounts if not mount.startswith(".") and mount not in composed["volumes"]] == []


def test_compose_file_opens_ports_to_this_machine_alone(composed: dict[str, Any]) -> None:
    ports = [port for service in composed["services"].values() for port in service.get("ports", ())]

    assert ports and all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_file_holds_no_password(composed: dict[str, Any]) -> None:
    text = json.dumps(composed)

    assert re.findall(r"PASSWORD\": \"(?!\$\{)", text) == []
    assert re.findall(r"://[^:/@]+:(?!\$\{)[^@/]*@", text) == []


def test_compose_file_waits_for_what_a_process_does_at_its_end(composed: dict[str, Any]) -> None:
    services = composed["services"]

    assert parse_duration(services["server"]["stop_grace_period"]) > Settings().server_drain_timeout_seconds
    assert parse_duration(services["worker"]["stop_grace_period"]) >= 120
