"""What memory the operator takes for 1,000 to 5,000 resources, one Realm to three Catalogs, with a store on SQLite on disk.

The resources are applied while the operator runs, a thousand after the other, and it is restarted with all of them.
The limit of the chart follows from these rows. Settings are the shipped ones.
Run it with ``make bench SUITE=operator_memory``; ``--quick`` is small and shows that it works.
``python -m benchmarks.operator_memory --small-cache`` keeps the store's cache at 1 MiB, and so shows what the resources take without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.disk import working_folder
from benchmarks.kubernetes import LONG, Bench, Scale, has_seen, resources
from benchmarks.report import Row, at_most, say, show, write_results

from kubetest import Operator, start_cluster, wait_for

SUITE, SMALL_CACHE_SUITE = "operator_memory", "operator_memory_small_cache"
SMALL_CACHE = {"HEADWATER_CACHE_BYTES": str(1024 * 1024)}
BACKEND = "sqlite"
LIMIT_MIB = 512
"""The limit of the chart."""


@dataclass(frozen=True)
class Steps:
    """So many times one more batch of Realms, each with its Catalogs."""

    count: int
    realms: int


FULL = Steps(count=5, realms=250)
QUICK = Steps(count=2, realms=5)


def main(arguments: list[str]) -> int:
    is_quick, has_small_cache = "--quick" in arguments, "--small-cache" in arguments
    steps, load = (QUICK if is_quick else FULL), os.getloadavg()[0]
    suite, changes = (SMALL_CACHE_SUITE, SMALL_CACHE) if has_small_cache else (SUITE, {})
    scale = Scale(realms=steps.count * steps.realms, rest_seconds=0, latencies=0, terms=0, kills=0)
    with working_folder() as folder, start_cluster(folder) as cluster:
        rows = list(measure(Bench(cluster, cluster.make_namespace("bench"), scale, folder, changes), steps))
    print(show(rows))
    settings = {"realms": scale.realms, "catalogs": scale.catalogs, "load_before": load}
    print(f"\nwritten to {write_results(suite, rows, settings=settings, is_quick=is_quick)}")
    return 0


def measure(bench: Bench, steps: Steps) -> Iterator[Row]:
    try:
        yield from growth(bench, steps)
        yield from restart(bench)
    finally:
        bench.end()


def growth(bench: Bench, steps: Steps) -> Iterator[Row]:
    operator, watched = bench.start_operator()
    wait_for(operator.ready, seconds=LONG, why=operator.last_words)
    yield Row("RSS without resources", BACKEND, watched.rss_mib(), "MiB")
    total = 0
    for batch in batches(bench.scale, steps):
        total += len(batch)
        say(f"until {total:,} resources are ready")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda body: bench.cluster.api.create_resource(bench.namespace.path(body["kind"]), body), batch))
        wait_until_ready(operator, total)
        yield Row(
            f"{total:,} resources: peak RSS until all Ready", BACKEND, peak_mib(operator), "MiB", target=at_most(LIMIT_MIB)
        )
        yield Row(f"{total:,} resources: RSS afterwards", BACKEND, watched.rss_mib(), "MiB", target=at_most(LIMIT_MIB))
    assert bench.all_are_ready()
    bench.settle(operator)
    yield Row("the same, with an empty queue", BACKEND, watched.rss_mib(), "MiB", target=at_most(LIMIT_MIB))


def restart(bench: Bench) -> Iterator[Row]:
    total = bench.scale.resources
    say(f"restart with {total:,} resources")
    bench.stop_leader()
    operator, _ = bench.start_operator()
    wait_for(operator.ready, seconds=LONG, why=operator.last_words)
    wait_for(lambda: has_seen(operator, total), seconds=LONG, every=0.1, why=operator.last_words)
    title = f"restart with {total:,} resources: peak RSS until all were looked at"
    yield Row(title, BACKEND, peak_mib(operator), "MiB", target=at_most(LIMIT_MIB))


def batches(scale: Scale, steps: Steps) -> Iterator[list[dict[str, Any]]]:
    """All resources, each Catalog in the batch of its Realm."""
    bodies = list(resources(scale))
    realms, catalogs = bodies[: scale.realms], bodies[scale.realms :]
    each = len(catalogs) // len(realms)
    for start in range(0, scale.realms, steps.realms):
        end = start + steps.realms
        yield realms[start:end] + catalogs[start * each : end * each]


def wait_until_ready(operator: Operator, total: int) -> None:
    def is_ready() -> bool:
        return operator.metric("headwater_operator_resources", condition="Ready", status="True") >= total

    wait_for(is_ready, seconds=LONG, every=0.2, why=operator.last_words)


def peak_mib(operator: Operator) -> float:
    """The largest RSS since the process started, as the kernel keeps it: the peaks of hashing a secret are shorter than a sample."""
    status = Path(f"/proc/{operator.pid}/status").read_text(encoding="ascii")
    return int(dict(line.split(":", 1) for line in status.splitlines())["VmHWM"].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
