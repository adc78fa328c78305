"""The main job, from nothing: ``make demo``, or ``python examples/demo.py``.

A SQLite store, a broker that is a folder, real worker processes and Spark on this machine. Everything lies in ``.demo`` and in
``examples/quickstart/warehouse``; both are made anew each time. What is printed after ``$`` is what a user would type.

``HEADWATER_DEMO_STORE`` names another store to run on, which has to be empty: an empty schema or database of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"
QUICKSTART = Path("examples/quickstart")
WAREHOUSE = QUICKSTART / "warehouse"
READER = ".demo/credentials/acme.ann.json"
GRACE_SECONDS = 3
SERVER_END_SECONDS = 30
SETTINGS = {
    "HEADWATER_STORE": os.environ.get("HEADWATER_DEMO_STORE") or "sqlite:///.demo/headwater.db",
    "HEADWATER_UNSAFE_SHORT_GRACES": "true",
    "HEADWATER_WRITER_GRACE": f"{GRACE_SECONDS}s",
    "HEADWATER_READER_GRACE": f"{GRACE_SECONDS}s",
    "HEADWATER_COMMIT_TIMEOUT": "2s",
    "HEADWATER_IMPORT_BATCH": "4",
    "HEADWATER_DISPATCH": "500ms",
    "HEADWATER_SPARK_FROM_TABLES": "1",
}


def main() -> int:
    started = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("credentials", "keys"):
        (FOLDER / name).mkdir(parents=True)
    say(
        "The demo shortens graces and holds by the setting named UNSAFE, so that nobody has to wait hours; never do that in earnest:"
    )
    for name, value in SETTINGS.items():
        has_secret = name == "HEADWATER_STORE" and "HEADWATER_DEMO_STORE" in os.environ
        print(f"    export {name}={'$HEADWATER_DEMO_STORE' if has_secret else value}")

    say("1. A lake that exists already: Iceberg tables in a folder")
    python("examples/warehouse.py", WAREHOUSE)

    say("2. A realm that somebody made by hand, and that is about to be deleted")
    headwater("realm", "create", "sandbox", "--credentials", ".demo/credentials/sandbox.json")
    headwater("catalog", "create", "sandbox/scratch", "--base-location", (FOLDER / "scratch").as_uri())
    headwater("catalog", "branch", "create", "sandbox/scratch", "trial")

    say("3. The manifests: acme is made and its catalog filled by Spark; sandbox is purged")
    headwater("up", QUICKSTART, "--once", "--wait", "30s", "--credentials", ".demo/credentials", expected=8)

    say("4. Life goes on: a branch comes and goes, tables get new snapshots, the catalog follows them")
    headwater("catalog", "branch", "create", "acme/lake", "experiment")
    headwater("catalog", "branch", "delete", "acme/lake", "experiment")
    python("examples/warehouse.py", "--append", WAREHOUSE)
    headwater("import", "acme/lake", WAREHOUSE, "--mode", "sync", expected=8)
    headwater("catalog", "log", "acme/lake")
    headwater("import-report", "acme/lake", FOLDER / "import.html")

    say("5. From Python, by pyiceberg: a table on a branch of its own, merged when it is right")
    headwater("catalog", "branch", "create", "acme/lake", "trial")
    python("examples/trial.py", "acme", "lake", "trial")
    headwater("catalog", "diff", "acme/lake", "main", "trial")
    headwater("catalog", "merge", "acme/lake", "trial")

    say("6. To engines: the catalog is served for a moment, and pyiceberg uses it over Iceberg's REST protocol")
    with served_catalogs() as url:
        python("examples/rest_client.py", url, "acme/lake")
    headwater("catalog", "log", "acme/lake", "--limit", "2")

    say("7. Who may do what: the manifests let ann read the namespace sales and nothing else, and DuckDB comes as ann")
    key = "import secrets; print(secrets.token_hex(32))"
    shell(f"{sys.executable} -c '{key}' > .demo/keys/first", shown=f"python -c '{key}' > .demo/keys/first")
    with served_catalogs(HEADWATER_SERVER_SIGNING_KEYS=".demo/keys") as url:
        python("examples/reader.py", url, "acme/lake", READER)

    say("8. What the lake keeps: two tables come home, a policy says how much of them stays, and old snapshots expire")
    headwater("catalog", "branch", "delete", "acme/lake", "trial")
    headwater("table", "adopt", "acme/lake", "sales.orders", "finance.payments", "--confirm", "acme/lake")
    headwater("policy", "set", "acme/lake", "snapshots", "--max-age", "1s", "--min-to-keep", "1")
    headwater("policy", "effective", "acme/lake", "sales.orders")
    headwater("files", "report", "acme/lake", "--run", "--limit", "2")
    headwater("snapshots", "expire", "acme/lake")

    say(f"9. After the grace of {GRACE_SECONDS} seconds: collect now what Sunday's run would collect")
    time.sleep(GRACE_SECONDS + 2)
    headwater("gc", "run", "acme", "--dry-run")
    headwater("task", "run-now", waiting_collection())
    headwater("up", QUICKSTART, "--once", "--credentials", ".demo/credentials")

    say("10. The lake's files: what nobody refers to any more is marked, reported and explained; nothing is deleted")
    headwater("files", "report", "acme/lake", "--run", "--limit", "2")
    headwater("files", "explain", one_of_the_files())

    say("11. What there is now")
    headwater("realm", "list")
    headwater("catalog", "tables", "acme/lake", "--limit", "5")
    headwater("gc", "log")
    headwater("fsck")
    say(f"Done in {time.monotonic() - started:.0f} seconds.")
    return 0


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def python(*arguments: object) -> None:
    run("python", sys.executable, arguments, expected=0)


def headwater(*arguments: object, expected: int = 0) -> None:
    run("headwater", Path(sys.executable).with_name("headwater"), arguments, expected=expected)


def shell(command: str, *, shown: str) -> None:
    print(f"\n$ {shown}", flush=True)
    subprocess.run(command, cwd=ROOT, shell=True, check=True)


def run(shown: str, program: object, arguments: tuple[object, ...], *, expected: int) -> None:
    words = [str(argument) for argument in arguments]
    print(f"\n$ {shown} {' '.join(words)}", flush=True)
    code = subprocess.run([str(program), *words], cwd=ROOT, env=environment(), check=False).returncode
    if code != expected:
        raise SystemExit(f"`{shown} {' '.join(words)}` ended with exit code {code}, expected {expected}")


@contextmanager
def served_catalogs(**settings: str) -> Iterator[str]:
    """Serve the store's catalogs on a free port of this machine; gives the server's URL. Whatever happens, the server ends with it."""
    words = ["serve", "--listen", "127.0.0.1:0", "--log-level", "warning"]
    shown = " ".join([*(f"{name}={value}" for name, value in settings.items()), "headwater", *words])
    print(f"\n$ {shown} &", flush=True)
    command, variables = [Path(sys.executable).with_name("headwater"), *words], environment() | settings
    with ended_by_sigterm(), subprocess.Popen(command, cwd=ROOT, env=variables, stdout=PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline().strip()  # ends when the server does, so it is never waited for in vain
            if not line.startswith("serving "):
                raise SystemExit(f"`headwater {' '.join(words)}` did not begin to serve")
            print(line, flush=True)
            yield line.removeprefix("serving ").removesuffix("/iceberg")
            print("\n$ kill %1", flush=True)
            server.terminate()
            if code := server.wait(SERVER_END_SECONDS):
                raise SystemExit(f"`headwater {' '.join(words)}` ended with exit code {code}, expected 0")
        finally:
            server.kill()  # nothing is left to kill but after an error


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the demo by an exception, which ends what was started, too."""
    earlier = {number: signal.signal(number, lambda got, _: sys.exit(128 + got)) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def waiting_collection() -> str:
    """The id of the collection that waits for Sunday; what a person reads off `headwater task list`."""
    program = Path(sys.executable).with_name("headwater")
    command = [str(program), "-o", "json", "task", "list", "--kind", "gc", "--realm", "acme", "--state", "WAITING"]
    tasks = json.loads(subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True).stdout)
    return str(tasks[0]["id"])


def one_of_the_files() -> str:
    """A file that nobody refers to: what a person reads off ``headwater files list``."""
    program = Path(sys.executable).with_name("headwater")
    command = [str(program), "-o", "json", "files", "list", "acme/lake", "--limit", "1"]
    files = json.loads(subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True).stdout)
    return str(files[0]["path"])


def environment() -> dict[str, str]:
    return os.environ | SETTINGS


if __name__ == "__main__":
    sys.exit(main())
