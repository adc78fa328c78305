"""A server that speaks S3's protocol, from moto, as a process that does not outlive the tests."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from servers.child_servers import command_of

__all__ = ["S3_LOGIN", "access_to", "s3_server"]

S3_LOGIN = {"access-key-id": "AKIALOOPBACK", "secret-access-key": "secret-of-the-tests"}
"""Credentials of these servers, as options of a storage name them."""

_RUN = "from moto.server import main; main(sys.argv[1:])"


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of a server without any bucket."""
    command = [*command_of(_RUN), "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        said = process.stderr
        assert said is not None
        reader = None
        try:
            found = next((line.split()[-1] for line in said if "Running on" in line), None)
            assert found is not None, "the S3 server ended before it said where it listens"
            reader = threading.Thread(
                target=lambda: [None for _ in said]
            )  # it logs every request, and stands still when nobody reads
            reader.start()
            yield found
        finally:
            process.terminate()
            process.wait()
            if reader is not None:
                reader.join()


def access_to(url: str) -> dict[str, str]:
    """The variables by which clients find that server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": S3_LOGIN["access-key-id"],
        "AWS_SECRET_ACCESS_KEY": S3_LOGIN["secret-access-key"],
        "AWS_REGION": "us-east-1",
    }
