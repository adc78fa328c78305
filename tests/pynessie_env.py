"""pynessie, Nessie's library and command line in Python, in the environment of its own that the set-up of the long tests makes.

A process of that environment answers for all tests of a run: its start takes a second, and one call of its command line some
milliseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / ".tools" / "pynessie"

_SERVE = """
import json, sys
from click.testing import CliRunner
from pynessie import init
from pynessie.cli import cli
from pynessie.error import NessieException
from pynessie.model import *

def answer(request):
    if "words" in request:
        done = CliRunner().invoke(cli, request["words"], input=request["typed"])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return {"code": done.exit_code, "text": done.output}
    names = dict(globals(), client=init(config_dict=request["config"]), result=None)
    try:
        exec(request["program"], names)
    except NessieException as error:
        return {"fault": [type(error).__name__, error.error_code, error.status_code, str(error)]}
    return {"result": names["result"]}

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
"""


class NessieFault(Exception):
    """What pynessie raised: the name of its class, the code and the status that the server gave, and the text."""

    def __init__(self, kind: str, code: str, status: int, text: str) -> None:
        super().__init__(f"{kind} ({code}, {status}): {text}")
        self.kind, self.code, self.status, self.text = kind, code, status, text


def pynessie_program(name: str = "nessie") -> str:
    """A program of pynessie's environment; where there is none the test is skipped and says why."""
    if not (FOLDER / ".complete").exists():
        pytest.skip(
            "pynessie is not in .tools, where it has the older marshmallow that it wants: `scripts/setup.sh engines` installs it"
            " where pip has it"
        )
    return str(FOLDER / "bin" / name)


def pynessie_variables(home: Path) -> dict[str, str]:
    """The environment of a program of pynessie, which keeps its configuration below a home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NESSIE_", "PYTHON", "XDG_"))}
    return {**kept, "HOME": str(home), "COLUMNS": "200"}


@dataclass(frozen=True)
class Pynessie:
    """pynessie as its users have it, for one catalog.

    endpoint      of version 1 of Nessie's API
    token         shown with each request; empty: none
    """

    process: subprocess.Popen[str]
    endpoint: str
    token: str = ""

    def at(self, url: str, warehouse: str, *, token: str = "") -> Pynessie:
        """The same process for a catalog of a server."""
        return replace(self, endpoint=f"{url}/nessie/{warehouse}/api/v1", token=token)

    def run(self, *words: str, typed: str = "") -> str:
        """What a command prints that ends with 0."""
        code, text = self.command(words, typed)
        assert code == 0, text
        return text

    def run_json(self, *words: str, typed: str = "") -> Any:
        """What a command prints with ``--json``."""
        return json.loads(self.run("--json", *words, typed=typed))

    def fail(self, *words: str, typed: str = "") -> str:
        """What a command prints that ends with 1."""
        code, text = self.command(words, typed)
        assert code == 1, text
        return text

    def execute(self, program: str) -> Any:
        """What a program makes ``result``, of names of pynessie's model and its ``client``; raises NessieFault."""
        login = {"auth.type": "bearer", "auth.token": self.token} if self.token else {}
        answer = self._ask({"program": program, "config": {"endpoint": self.endpoint, **login}})
        if "fault" in answer:
            raise NessieFault(*answer["fault"])
        return answer["result"]

    def command(self, words: tuple[str, ...], typed: str = "") -> tuple[int, str]:
        """The exit code of a command, and what it prints."""
        login = ["--auth-token", self.token] if self.token else []
        answer = self._ask({"words": ["--endpoint", self.endpoint, *login, *words], "typed": typed})
        return int(answer["code"]), str(answer["text"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "pynessie's process has ended: see what it wrote above"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def pynessie_process(home: Path) -> Iterator[Pynessie]:
    """A process with pynessie, for any catalog."""
    command = [pynessie_program("python"), "-c", _SERVE]
    with subprocess.Popen(
        command, env=pynessie_variables(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Pynessie(process, endpoint="")
        finally:
            process.kill()
