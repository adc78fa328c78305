"""Stands in for kube-apiserver, etcd, kube-controller-manager and kubectl: ``stand_in.py FOLDER NAME KUBECTL arguments…``.

Each call is written into FOLDER/NAME.calls. kube-apiserver is the small server of the tests behind TLS, with the token that it was given;
etcd answers that it is well; kube-controller-manager does nothing; kubectl is kubectl. Like a real one, this kube-apiserver alone lets no
namespace go.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    folder, name, kubectl, *arguments = sys.argv[1:]
    with Path(folder, f"{name}.calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(arguments) + "\n")
    if name == "kubectl":
        os.execv(kubectl, [kubectl, *arguments])
    options = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    if name == "etcd":
        be_well(options)
    elif name == "kube-controller-manager":
        signal.pause()
    else:
        asyncio.run(serve(options))


def be_well(options: dict[str, str]) -> None:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"health":"true"}')

    port = urlsplit(options["listen-client-urls"]).port
    assert port is not None
    http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()


async def serve(options: dict[str, str]) -> None:
    token = Path(options["token-auth-file"]).read_text(encoding="utf-8").partition(",")[0]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "kubeapi", "--port", "0", "--no-controllers"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        behind = urlsplit(json.loads(server.stdout.readline())["url"])
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options["tls-cert-file"], options["tls-private-key-file"])

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await proxy(reader, writer, behind.hostname or "", behind.port or 0, token)

        proxying = await asyncio.start_server(pass_on, "127.0.0.1", int(options["secure-port"]), ssl=tls)
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        await ended.wait()
        proxying.close()
        server.kill()


async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, token: str) -> None:
    """Everything in both directions, if the first request carries the token. Later ones come from whoever sent that."""
    head = await reader.readuntil(b"\r\n\r\n")
    if f"bearer {token}".lower() not in head.decode("latin-1").lower():
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        return
    back, forth = await asyncio.open_connection(host, port)
    forth.write(head)
    await asyncio.gather(copy(reader, forth), copy(back, writer))


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


if __name__ == "__main__":
    main()
