"""The systemd units: systemd takes them as they are, and they leave a process the time that it needs to end."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headwater import Settings
from headwater.cli import main
from headwater.settings import parse_duration, variable_of

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))
NAMES = [unit.name for unit in UNITS]


def value_of(unit: Path, key: str) -> str:
    [value] = re.findall(rf"^{key}=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return str(value)


def stop_seconds(name: str) -> float:
    return parse_duration(value_of(UNITS[NAMES.index(name)], "TimeoutStopSec"))


@pytest.mark.long
@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_units_are_valid_to_systemd(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not on the PATH: it comes with systemd")
    copy = tmp_path / unit.name.replace("@", "@8183")
    program = Path(sys.executable).parent / "headwater"
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/headwater/bin/headwater", str(program)))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_units_call_commands_with_options_that_there_are(unit: Path) -> None:
    _, command, *words = value_of(unit, "ExecStart").split()
    found = main.get_command(main.make_context("headwater", [], resilient_parsing=True), command)

    assert found is not None
    options = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_units_set_variables_that_are_settings(unit: Path) -> None:
    variables = re.findall(r"^Environment=(\w+)=", unit.read_text(encoding="utf-8"), re.MULTILINE)

    assert set(variables) <= set(Settings.variables())


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_units_share_one_user_because_they_share_a_folder(unit: Path) -> None:
    assert (value_of(unit, "DynamicUser"), value_of(unit, "User"), value_of(unit, "StateDirectory")) == ("yes",) + (
        "headwater",
    ) * 2


def test_units_wait_for_what_a_process_does_at_its_end() -> None:
    assert stop_seconds("headwater-server.service") > Settings().server_drain_timeout_seconds
    assert stop_seconds("headwater-up.service") > 30
    assert stop_seconds("headwater-worker@.service") >= 120


def test_units_name_probes_that_the_page_names() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operate" / "without-kubernetes.md").read_text(encoding="utf-8")

    assert f"{variable_of('worker_probes')}=127.0.0.1:8183" in page
    assert f"{variable_of('server_probes')}=127.0.0.1:8182" in page
