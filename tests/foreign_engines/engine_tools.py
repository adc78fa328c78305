"""Engines that `make test-engines` installs, and what `headwater client-config` prints for them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.catalogs import Catalog
from headwater.cli import main
from servers.s3 import S3_LOGIN

TOOLS = Path(__file__).parents[2] / ".tools"
MINUTES = 10 * 60
"""What engines may take to start or to build on a busy machine."""
_JVMS = "/usr/lib/jvm"


CLIENT_ID, CLIENT_SECRET = "etl", "the-secret-of-etl"
"""Of the client that Keycloak knows."""


@dataclass(frozen=True)
class OpenLake:
    """A catalog of a server that asks nobody who calls."""

    url: str
    warehouse: str
    catalog: Catalog
    folder: Path


def tool_folder(name: str) -> Path:
    """The folder of an engine; skips the test where it is not installed."""
    folder = TOOLS / name
    if not (folder / ".complete").exists():
        pytest.skip(f"{name} is not installed: `make test-engines` downloads it, and says where that is not possible")
    return folder


def find_java(oldest: int) -> str:
    """A Java of this version or a newer one; skips the test where there is none."""
    named = [os.environ["JAVA_HOME"] + "/bin/java"] if os.environ.get("JAVA_HOME") else []
    for java in [*named, *filter(None, [shutil.which("java")]), *map(str, sorted(Path(_JVMS).glob("*/bin/java")))]:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        version = re.search(r' version "(\d+)', told)
        if version and int(version[1]) >= oldest:
            return java
    pytest.skip(f"no Java {oldest} or newer is at JAVA_HOME, on the PATH or in {_JVMS}")


def printed_config(engine: str, warehouse: str, url: str, form: str, *further: str | Path) -> str:
    """What the command prints, with further words to it."""
    words = ["client-config", engine, warehouse, "--url", url, "--form", form, *map(str, further)]
    result = CliRunner().invoke(main, words, prog_name="headwater")
    assert result.exit_code == 0, result.output
    return result.stdout


def clean_environment(**added: str) -> dict[str, str]:
    """The environment without anybody's logins, settings and proxies for Iceberg."""
    dropped = ("AWS_", "HEADWATER_", "ICEBERG_", "PYICEBERG_")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | added


def bucket_login() -> dict[str, str]:
    """The variables by which a client of S3 finds the test's own login."""
    return {"AWS_ACCESS_KEY_ID": S3_LOGIN["access-key-id"], "AWS_SECRET_ACCESS_KEY": S3_LOGIN["secret-access-key"]}


def run_program(command: Iterable[str | Path], folder: Path, **environment: str) -> str:
    """What a program prints that ends with 0."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=clean_environment(**environment), capture_output=True, text=True, timeout=MINUTES, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout
