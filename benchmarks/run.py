"""Run suites of benchmarks, one after the other: ``python -m benchmarks.run [SUITE] [--quick]``, or ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NO_SUITES = (
    "commit_crowd",
    "contenders",
    "contention",
    "contention_curves",
    "contention_tables",
    "counting",
    "disk",
    "dummy_references",
    "file_garbage",
    "file_queue",
    "file_rows",
    "file_updates",
    "floor",
    "http_calls",
    "iceberg_engine",
    "lake_candidates",
    "lake_expiry",
    "lake_on_s3",
    "lakes",
    "litter",
    "options",
    "others",
    "packs",
    "pages",
    "peak",
    "pictures",
    "places",
    "plain",
    "reference_counts",
    "reference_options",
    "reference_watch",
    "report",
    "run",
    "scanning",
    "served_lakes",
    "server_bench",
    "server_crowds",
    "server_nessie",
    "server_rights",
    "sql_catalogs",
    "storms",
    "table_rivals",
    "table_writers",
    "tables",
    "task_queue",
    "timing",
    "trees",
)


def main(arguments: list[str]) -> int:
    options = [argument for argument in arguments if argument.startswith("-")]
    chosen = [argument for argument in arguments if argument not in options]
    there = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem not in NO_SUITES)
    unknown = sorted(set(chosen) - set(there))
    if unknown:
        print(f"there is no suite {', '.join(unknown)}; there is: {', '.join(there)}", file=sys.stderr)
        return 2
    codes = [
        subprocess.run([sys.executable, "-m", f"benchmarks.{suite}", *options], cwd=FOLDER.parent, check=False).returncode
        for suite in chosen or there
    ]
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
