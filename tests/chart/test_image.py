"""The Dockerfile: what it says, and what its build stages install when they are done by hand here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
USER = "10001:10001"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
DRIVERS = {"psycopg", "psycopg-binary", "pymongo"}
"""What the stores need whose databases are servers."""
LAKE = {"pyarrow", "fastavro", "backports-zstd", "cramjam"}
"""What it takes to look into the files of tables."""
TARGETS = {"operator": "operator-build", "server": "server-build", "worker": "worker-build"}


@pytest.fixture(scope="module")
def stages() -> dict[str, list[dict[str, Any]]]:
    """The instructions of each stage, in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    name = ""
    for instruction in DockerfileParser(path=str(DOCKERFILE), cache_content=True).structure:
        if instruction["instruction"] == "FROM":
            name = instruction["value"].split(" AS ")[1]
        if instruction["instruction"] != "COMMENT":
            found.setdefault(name, []).append(instruction)
    return found


def said(stages: dict[str, list[dict[str, Any]]], stage: str, word: str) -> list[str]:
    return [one["value"] for one in stages[stage] if one["instruction"] == word]


def test_hadolint_finds_nothing() -> None:
    linted = subprocess.run(
        [str(Path(sys.executable).with_name("hadolint")), str(DOCKERFILE)], check=False, capture_output=True, text=True
    )

    assert (linted.returncode, linted.stdout) == (0, "")


def test_base_is_pinned_to_a_digest(stages: dict[str, list[dict[str, Any]]]) -> None:
    bases = {image for stage in stages if stage for image in said(stages, stage, "FROM")}

    assert re.fullmatch(r"BASE=python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", *said(stages, "", "ARG"))
    assert {base.split(" AS ")[0] for base in bases} == {"${BASE}", "build", "base"}


@pytest.mark.parametrize("target", TARGETS)
def test_image_runs_as_a_user_without_rights(stages: dict[str, list[dict[str, Any]]], target: str) -> None:
    assert said(stages, target, "USER") == [USER]
    assert stages[target][-1]["instruction"] in ("ENTRYPOINT", "CMD")


@pytest.mark.parametrize("target", TARGETS)
def test_image_takes_nothing_of_its_build_but_the_environment(stages: dict[str, list[dict[str, Any]]], target: str) -> None:
    copied = [one for one in said(stages, target, "COPY") if one.startswith("--from")]

    assert copied == [f"--from={TARGETS[target]} /opt/headwater /opt/headwater"]


def test_version_is_that_of_the_package(stages: dict[str, list[dict[str, Any]]]) -> None:
    assert f"VERSION={VERSION}" in said(stages, "base", "ARG")


def test_java_is_in_the_workers_image_only(stages: dict[str, list[dict[str, Any]]]) -> None:
    having = [
        stage for stage in stages if stage and any("openjdk-17-jre-headless" in run for run in said(stages, stage, "RUN"))
    ]

    assert having == ["worker"]


@pytest.mark.parametrize("target", TARGETS)
def test_every_image_can_open_every_store(target: str) -> None:
    assert set(pinned(target)) >= DRIVERS


@pytest.mark.parametrize("target", TARGETS)
def test_image_installs_only_what_is_pinned_by_hash(stages: dict[str, list[dict[str, Any]]], target: str) -> None:
    [command] = said(stages, TARGETS[target], "RUN")
    installs = [part.partition(" install ")[2] for part in command.split("&&") if " install " in part]

    assert [" ".join(install.split()) for install in installs] == [
        f"--only-binary :all: {'--no-binary pyspark ' if target == 'worker' else ''}--require-hashes -r deploy/images/{target}.txt",
        "--no-deps /wheels/headwater-*.whl",
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_pins_are_those_of_the_extras(target: str) -> None:
    """A change of an extra or of constraints.txt needs ``scripts/pin_images.sh``."""
    header, *_ = pins_file(target).read_text(encoding="utf-8").splitlines()
    extras = header.rpartition(": ")[2].split()

    assert pinned(target).items() <= constrained().items()
    assert {plain(requirement.name) for requirement in required(extras)} - {"headwater"} <= set(pinned(target))


def test_builder_gets_what_it_copies_and_no_more(stages: dict[str, list[dict[str, Any]]]) -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = [
        word for stage in stages for value in said(stages, stage, "COPY") if "--from" not in value for word in value.split()
    ]
    sources = {word for word in copied if (ROOT / word).exists() and word != "./"}

    assert "*" in lines
    assert sources == sent


@dataclass(frozen=True)
class Built:
    """The environment that a build stage leaves."""

    folder: Path

    def run(self, *command: str) -> str:
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        done = subprocess.run([*command], check=False, capture_output=True, text=True, env=environment, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def packages(self) -> dict[str, str]:
        program = "import importlib.metadata as m; [print(d.name, d.version) for d in m.distributions()]"
        pairs = [line.split() for line in self.run("python", "-c", program).splitlines()]
        return {plain(name): version for name, version in pairs}


@pytest.fixture(scope="module")
def wheels(stages: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stage that all targets build upon, on what the builder is sent; the root is this folder."""
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    source.mkdir()
    for name in ("core", "operator", "server", "workers"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "deploy" / "images", source / "deploy" / "images")
    run_stage(stages, "build", folder, folder / "opt")
    return folder


def build(stages: dict[str, list[dict[str, Any]]], target: str, wheels: Path) -> Built:
    """Run the commands of a target's build stage, upon the stage below."""
    folder = wheels / target
    run_stage(stages, TARGETS[target], wheels, folder)
    return Built(folder)


def run_stage(stages: dict[str, list[dict[str, Any]]], stage: str, root: Path, environment: Path) -> None:
    """Run the commands of a build stage, in a folder instead of the root. What only makes starts quicker, compiling, is left out."""
    variables = {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_COMPILE": "0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | variables
    for command in said(stages, stage, "RUN"):
        moved = command.replace(" /wheels", f" {root}/wheels").replace("/opt/headwater", str(environment))
        done = subprocess.run(["sh", "-ec", moved], cwd=root / "src", env=environ, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def pins_file(target: str) -> Path:
    return ROOT / "deploy" / "images" / f"{target}.txt"


def pinned(target: str) -> dict[str, str]:
    """The version of each package that an image installs; each has hashes."""
    blocks = re.split(r"\n(?=\S)", pins_file(target).read_text(encoding="utf-8").strip())[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    return {plain(name): version for name, version in (block.split()[0].split("==") for block in blocks)}


def required(extras: Iterable[str]) -> Iterator[Requirement]:
    """What Headwater requires with some of its extras, which may name others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]:
        requirement = Requirement(line)
        yield requirement
        if requirement.name == "headwater":
            yield from required(requirement.extras)


def constrained() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    return {plain(name): version for name, version in pairs}


def plain(name: str) -> str:
    """A package's name in its one normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.timeout(900)
def test_operators_image_has_what_its_extra_says(stages: dict[str, list[dict[str, Any]]], wheels: Path) -> None:
    built = build(stages, "operator", wheels)

    assert {"kopf", "kubernetes", "aiohttp", "prometheus-client"} | DRIVERS <= set(built.packages)
    assert ({"celery", "pyspark", "redis", "pytest", "pip", "setuptools"} | LAKE) & set(built.packages) == set()
    assert "headwater" in built.run("headwater", "version")
    assert "check" in built.run("headwater-operator", "--help")
    assert "release" in built.run("kubectl-headwater", "--help")
    assert "--pods" in built.run("headwater-operator", "elect-writer", "--help")


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.timeout(900)
def test_servers_image_has_what_its_extra_says(stages: dict[str, list[dict[str, Any]]], wheels: Path) -> None:
    built = build(stages, "server", wheels)

    assert {"starlette", "uvicorn", "h11", "prometheus-client"} | LAKE | DRIVERS <= set(built.packages)
    assert {"kopf", "kubernetes", "celery", "pyspark", "pytest", "pip", "setuptools"} & set(built.packages) == set()
    assert built.packages.items() - constrained().items() == {("headwater", VERSION)}
    assert "--listen" in built.run("headwater", "serve", "--help")


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.timeout(900)
def test_workers_image_has_what_its_extras_say(stages: dict[str, list[dict[str, Any]]], wheels: Path) -> None:
    built = build(stages, "worker", wheels)

    assert {"celery", "redis", "pyspark"} | LAKE | DRIVERS <= set(built.packages)
    assert {"kopf", "kubernetes", "aiohttp", "pytest", "pip", "setuptools"} & set(built.packages) == set()
    assert built.packages.items() - constrained().items() == {("headwater", VERSION)}
    assert "--alive-file" in built.run("headwater", "worker", "--help")
