"""``python -m kubeapi --port 0``: serve until SIGTERM, or until whoever started it is gone."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import yaml
from aiohttp import web

from kubeapi.server import Server, Tuning

SECONDS_BETWEEN_LOOKS = 0.5


def main() -> None:
    options = _options()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kubeapi", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--policy", type=Path, action="append", default=[], help="a YAML file of objects to make at the start")
    parser.add_argument("--kept-changes", type=int, default=Tuning.__dataclass_fields__["kept_changes"].default)
    parser.add_argument("--kept-requests", type=int, default=Tuning.__dataclass_fields__["kept_requests"].default)
    parser.add_argument("--bookmark-seconds", type=float, default=Tuning.__dataclass_fields__["bookmark_seconds"].default)
    parser.add_argument(
        "--no-controllers", action="store_true", help="be as a kube-apiserver without a kube-controller-manager"
    )
    return parser.parse_args()


async def _serve(options: argparse.Namespace) -> None:
    parent = os.getppid()
    has_controllers = not options.no_controllers
    server = Server(Tuning(options.kept_changes, options.kept_requests, options.bookmark_seconds, has_controllers))
    server.prepare()
    for file in options.policy:
        for body in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if body:
                server.put(body)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    runner = web.ServerRunner(
        web.Server(server.handle, handler_cancellation=True, access_log=None, keepalive_timeout=3600), shutdown_timeout=0.5
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", options.port)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(json.dumps({"url": f"http://{host}:{port}"}) + "\n")
    sys.stdout.flush()
    await _until_alone(stopped, parent)
    server.watches.cut()
    await runner.cleanup()


async def _until_alone(stopped: asyncio.Event, parent: int) -> None:
    while not stopped.is_set() and os.getppid() == parent:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_BETWEEN_LOOKS):
                await stopped.wait()


main()
