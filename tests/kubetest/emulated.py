"""The small API server beside these tests, as a process of its own."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from kubetest.processes import clean_environment
from servers.process_pause import pause

__all__ = ["Emulated", "start_emulated", "write_kubeconfig"]

SECONDS_TO_START = 30


@dataclass(frozen=True)
class Emulated:
    url: str
    kubeconfig: Path
    popen: subprocess.Popen[str]
    has_controllers: bool = True

    @property
    def control(self) -> str | None:
        return self.url

    def stop(self) -> None:
        self.popen.terminate()
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        if self.popen.stdout is not None:
            self.popen.stdout.close()

    def pause(self) -> None:
        pause(self.popen.pid)

    def resume(self) -> None:
        self.popen.send_signal(signal.SIGCONT)


def start_emulated(folder: Path, *arguments: str, with_controllers: bool = True) -> Emulated:
    arguments += () if with_controllers else ("--no-controllers",)
    log = folder / "apiserver.log"
    environment = clean_environment() | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with log.open("w") as errors:
        popen = subprocess.Popen(
            [sys.executable, "-m", "kubeapi", "--port", "0", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip
    assert popen.stdout is not None
    heard = select.select([popen.stdout], [], [], SECONDS_TO_START)[0]
    line = popen.stdout.readline() if heard else ""
    if not line:
        popen.kill()
        popen.wait()
        popen.stdout.close()
        raise AssertionError(f"the API server of the tests did not start:\n{log.read_text()}")
    url = json.loads(line)["url"]
    return Emulated(url, write_kubeconfig(folder / "kubeconfig", url), popen, with_controllers)


def write_kubeconfig(file: Path, url: str, *, authority: Path | None = None, token: str = "tests", name: str = "tests") -> Path:
    cluster = {"server": url} | ({"certificate-authority": str(authority)} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    file.chmod(0o600)
    return file
