"""The lake's files: expiry of snapshots, and files that nobody refers to, beside Iceberg's own procedures.

Run it with ``make bench SUITE=files_lake``; ``--quick`` is small and shows that it works, ``--only=expiry`` measures some only,
``--into=FOLDER`` keeps the figures there. Iceberg's engine runs on the same cores, after ours, in the same run.
"""

from __future__ import annotations

import sys

from benchmarks.disk import working_folder
from benchmarks.lake_candidates import CandidateScale, measure_candidates
from benchmarks.lake_expiry import ExpiryScale, measure_expiry
from benchmarks.lake_on_s3 import ObjectScale, measure_on_s3
from benchmarks.options import read_options
from benchmarks.report import Row, show, write_results

SUITE = "files_lake"
PARTS = ("expiry", "candidates", "s3")
FULL = ExpiryScale(tables=1000, snapshots=10, sample=100)
QUICK = ExpiryScale(tables=100, snapshots=3, sample=3)
FULL_TABLE = CandidateScale(files=1_000_000, manifests=5_000, snapshots=50, shared=300_000)
QUICK_TABLE = CandidateScale(files=10_000, manifests=100, snapshots=10, shared=2_000)
FULL_OBJECTS = ObjectScale(objects=100_000, manifests=500)
QUICK_OBJECTS = ObjectScale(objects=1_000, manifests=10)


def main(arguments: list[str]) -> int:
    options = read_options(arguments, PARTS)
    scale = QUICK if options.is_quick else FULL
    rows: list[Row] = []
    with working_folder() as folder:
        if options.wants("expiry"):
            rows += measure_expiry(folder / "expiry", scale)
        if options.wants("candidates"):
            rows += measure_candidates(folder / "candidates", QUICK_TABLE if options.is_quick else FULL_TABLE)
        if options.wants("s3"):
            rows += measure_on_s3(folder / "s3", QUICK_OBJECTS if options.is_quick else FULL_OBJECTS)
    print(show(rows))
    settings = {"tables": scale.tables, "snapshots": scale.snapshots, "sample": scale.sample, "load_before": options.load}
    print(f"\nwritten to {write_results(SUITE, rows, settings=settings, is_quick=options.is_part, folder=options.into)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
