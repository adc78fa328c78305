"""What the real kubectl prints when it talks to our server, against what it printed when it talked to a real one."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from transcripts import DATA

pytestmark = pytest.mark.long

TOOL = Path(__file__).parents[2] / ".tools" / "kubectl"

WIDGET = {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "metadata": {"name": "k"}, "spec": {"id": "abc"}}
FILES = {
    "k.yaml": WIDGET,
    "k2.yaml": WIDGET | {"spec": {"id": "abc", "size": 5}},
    "bad.yaml": WIDGET | {"metadata": {"name": "bad"}, "spec": {"id": "UPPER", "state": "Nope"}},
    "unk.yaml": WIDGET | {"metadata": {"name": "bad"}, "spec": {"id": "abc", "nope": 1}},
}
BEFORE = {
    "a": {"spec": {"id": "abc"}, "status": {"state": "ACTIVE", "conditions": [{"type": "Ready", "status": "True"}]}},
    "gen-6cnb4": {"spec": {"id": "abc"}},
    "ssa": {"spec": {"id": "abc"}},
}
"""Widgets that were there when the recording began."""

OTHERWISE = {
    "kubectl events": "the recorded cluster had events of its own",
}
"""Commands whose output is not compared, and why."""

NEWER = {
    'widget.example.dev "k" deleted': 'widget.example.dev "k" deleted from default namespace',
}
"""What kubectl 1.32 said, and what the newer one says."""


@dataclass(frozen=True)
class Said:
    command: str
    printed: str
    code: int


def recorded() -> list[Said]:
    text = (DATA / "kubectl-output.txt").read_text(encoding="utf-8")
    found = re.findall(r"^\$ (kubectl .*)\n((?:.*\n)*?)\[exit (\d+)\]$", text, re.MULTILINE)
    return [Said(command, printed, int(code)) for command, printed, code in found]


@pytest.fixture(scope="module")
def outcomes(widgets: str, tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    """Every recorded command, run in its order."""
    assert TOOL.exists(), f"{TOOL} is missing: scripts/setup.sh unpacks it"
    folder = tmp_path_factory.mktemp("kubectl")
    for name, body in FILES.items():
        (folder / name).write_text(yaml.safe_dump(body), encoding="utf-8")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "probe", "cluster": {"server": widgets}}],
        "users": [{"name": "probe", "user": {"token": "probe"}}],
        "contexts": [{"name": "probe", "context": {"cluster": "probe", "user": "probe"}}],
        "current-context": "probe",
    }
    (folder / "config").write_text(yaml.safe_dump(config), encoding="utf-8")
    for name, body in BEFORE.items():
        status = {"status": body.get("status", {})}
        run(folder, ["create", "-f", "-"], yaml.safe_dump(WIDGET | {"metadata": {"name": name}, "spec": body["spec"]}))
        run(folder, ["patch", "widget", name, "--subresource=status", "--type=merge", "-p", yaml.safe_dump(status)])
    return [run(folder, words(said.command)) for said in recorded()]


def words(command: str) -> list[str]:
    """The recorded commands are written without quotes."""
    start, patch, json_text = command.removeprefix("kubectl ").partition(" -p ")
    return [*shlex.split(start), *(["-p", json_text] if patch else [])]


def run(folder: Path, arguments: list[str], text: str | None = None) -> Said:
    environment = {"KUBECONFIG": str(folder / "config"), "KUBECACHEDIR": str(folder / "cache"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [TOOL, *arguments],
        cwd=folder, env=environment, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
    )  # fmt: skip
    return Said("kubectl " + " ".join(arguments), done.stdout, done.returncode)


def plain(printed: str) -> list[str]:
    """Without what differs from run to run: times, ages, versions, uids, and the width of columns."""
    for there, newer in NEWER.items():
        printed = re.sub(rf"^{re.escape(there)}$", newer, printed, flags=re.MULTILINE)
    for pattern, word in (
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
        (r"\S*/?(LIVE|MERGED)-\d+/", r"\1/"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "<time>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (r"(resourceVersion: |Resource Version: +)\"?\d+\"?", r"\1<version>"),
        (r"\b(\d+[smhd])+$", "<age>"),
        (r"(?<=\S) {2,}", "  "),
    ):
        printed = re.sub(pattern, word, printed, flags=re.MULTILINE)
    return [line.rstrip() for line in printed.splitlines()]


def numbered() -> list[tuple[int, str]]:
    return [(number, said.command) for number, said in enumerate(recorded()) if said.command not in OTHERWISE]


@pytest.mark.parametrize(
    ("number", "command"), numbered(), ids=lambda value: value if isinstance(value, str) else f"{value:02}"
)
def test_kubectl_prints_what_it_printed_for_a_real_server(number: int, command: str, outcomes: list[Said]) -> None:
    there, here = recorded()[number], outcomes[number]

    assert (plain(here.printed), here.code) == (plain(there.printed), there.code)
