"""A process that contends for a Lease, and acts while it leads: ``python lease_process.py KUBECONFIG NAMESPACE IDENTITY ACTS TIMING``.

Each act appends a line to the file ACTS: when, by the clock that all processes of a machine share, and who. The time is taken before
the fence is passed, so that at that time the process led if it did so afterwards.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import NoReturn

from headwater.errors import FencedError
from headwater.exits import stop_at_signals
from headwater_operator.kube import KubeApi, KubeTimeouts, kubeconfig_connection
from headwater_operator.runtime.leader_election import Leadership, LeaseTiming

LOST = 6


def main(kubeconfig: str, namespace: str, identity: str, acts: str, timing: str) -> int:
    stop = stop_at_signals()
    lead = Leadership(
        KubeApi(kubeconfig_connection(kubeconfig), timeouts=KubeTimeouts(0.5, 0.5)),
        namespace=namespace,
        name="contended",
        identity=identity,
        timing=LeaseTiming(**json.loads(timing)),
        on_lost=_end,
    )
    file = os.open(acts, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if lead.acquire(stop):
        while not stop.wait(0.005):
            at = time.monotonic()
            try:
                lead.fence()
            except FencedError as fault:
                _end(str(fault))
            os.write(file, f"{at} {identity}\n".encode())
    lead.release_lead()
    return 0


def _end(why: str) -> NoReturn:
    os._exit(LOST)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
