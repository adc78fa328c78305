"""What is released has one version, and the files of the code host say what the Makefile and the pins say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2]
WORKFLOWS = sorted((FOLDER / ".github" / "workflows").glob("*.yaml"))


def found(file: str, pattern: str) -> str:
    match = re.search(pattern, (FOLDER / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert match, f"{file} has no version"
    return match[1]


def pinned(package: str) -> str:
    return found("constraints.txt", rf"^{package}==(\S+)$")


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("charts/headwater/Chart.yaml", r"^version: (\S+)$"),
        ("charts/headwater/Chart.yaml", r'^appVersion: "(\S+)"$'),
        ("Dockerfile", r"^ARG VERSION=(\S+)$"),
        ("CHANGELOG.md", r"^## \[(\d\S+)\]"),
        ("charts/headwater/README.md", r"headwater-server:(\S+) "),
    ],
)
def test_version_is_that_of_the_package(file: str, pattern: str) -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert found(file, pattern) == project["version"] == version("headwater")


def test_hooks_before_a_commit_have_the_pinned_versions() -> None:
    repositories = yaml.safe_load((FOLDER / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    revisions = {repository["repo"].rpartition("/")[2]: repository.get("rev") for repository in repositories}

    assert revisions == {
        "ruff-pre-commit": f"v{pinned('ruff')}",
        "check-jsonschema": pinned("check-jsonschema"),
        "local": None,
    }


def test_workflow_runs_what_make_and_the_chart_have() -> None:
    jobs = yaml.safe_load((FOLDER / ".github" / "workflows" / "ci.yaml").read_text(encoding="utf-8"))["jobs"]
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}

    assert [runs[name][-1] for name in ("style", "test")] == ["make style", "make test"]
    assert runs["test-long"][-2:] == ["make test-long", "make demo"]
    assert [
        word for run in runs["chart"] for word in run.split() if word.startswith("charts/") and not (FOLDER / word).exists()
    ] == []


def test_workflows_name_actions_by_commit() -> None:
    """A tag can be moved to other code."""
    lines = [line for file in WORKFLOWS for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line]

    assert lines and [line for line in lines if not re.search(r"uses: \S+@[0-9a-f]{40} # v\d", line)] == []


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-issue-forms", sorted((FOLDER / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))),
    ],
)
@pytest.mark.long
def test_files_of_the_code_host_follow_their_schema(schema: str, files: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert files and checked.returncode == 0, checked.stdout + checked.stderr
