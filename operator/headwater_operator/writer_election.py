"""Which of several servers writes: the pod whose election holds the Lease bears a label, and the Service of the writer selects it.

It runs in a container beside a server, which knows nothing of it. Any number of servers may write, and compare-and-swap keeps their
commits apart; but commits of one process are combined, so that one that writes is faster than two. Therefore nothing here stops a server,
and nothing is lost when the API server is away: the label stays where it is.

Only the holder of the Lease writes labels: it takes the label off all other pods, and then puts it on its own. A holder that ends gives
the Lease back and leaves its label to the successor, so that there is no moment without a pod that the Service leads to.

    first     holds, labelled | SIGTERM: gives the Lease back, its server still answers
    second                    | takes the Lease within a second | label off the first, on itself
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import structlog
import urllib3

from headwater.errors import FencedError, HeadwaterError, NotFoundError
from headwater_operator.kube import KubeApi, KubeConnection, KubeTimeouts, connect_cluster, resource_path
from headwater_operator.runtime.leader_election import Leadership, LeaseTiming
from headwater_operator.runtime.operator_settings import OperatorSettings

log = structlog.get_logger(__name__)

WRITER_LABEL = "headwater.dev/writes"
WRITES = "true"
KUBE_TIMEOUTS = KubeTimeouts(connect_seconds=2.0, read_seconds=3.0)
LABEL_CHECK_SECONDS = 10.0
STOP_LOOK_SECONDS = 1.0
LOOK_TIMEOUT_SECONDS = 2.0
MISSES = 3


@dataclass(frozen=True, slots=True)
class WriterLabel:
    """The label on the pods of one Deployment.

    selector      labels that all of these pods have, and no other pod
    pod           the one that this process runs in
    """

    namespace: str
    selector: str
    pod: str

    def move_here(self, api: KubeApi) -> None:
        """Take the label off all other pods, then put it on this one. Nothing is written where that is so already.

        api           writes only while this process certainly holds the Lease
        raises        FencedError when it does not any more; ApiUnavailableError
        """
        selector = f"{self.selector},{WRITER_LABEL}={WRITES}"
        labelled = [
            str(pod["metadata"]["name"])
            for pod in api.list_resources(resource_path("Pod", self.namespace, None), label_selector=selector)
        ]
        for name in labelled:
            if name != self.pod:
                self._label(api, name, None)
        if self.pod not in labelled:
            self._label(api, self.pod, WRITES)
            log.info("this pod writes", pod=self.pod, instead_of=[name for name in labelled if name != self.pod])

    def _label(self, api: KubeApi, name: str, value: str | None) -> None:
        """Set the label of a pod, or remove it; a pod that is gone has none."""
        change: dict[str, Any] = {"metadata": {"labels": {WRITER_LABEL: value}}}
        try:
            api.patch_resource(resource_path("Pod", self.namespace, name), change, kind="merge")
        except NotFoundError:
            if value is not None:
                raise


class ServerWatch:
    """Whether the server beside this process is ready, looked at again and again by a thread.

    url           of its ``/readyz``
    on_gone       called when it was ready, and then was not three times in a row
    """

    def __init__(self, url: str, on_gone: Callable[[], None], *, look_seconds: float) -> None:
        self._url = url
        self._on_gone = on_gone
        self._look_seconds = look_seconds
        # over TLS, too, it is this pod's own server: nobody else can listen there, and no certificate is for a loopback address
        self._pool = urllib3.PoolManager(
            timeout=LOOK_TIMEOUT_SECONDS, retries=False, cert_reqs="CERT_NONE", assert_hostname=False
        )
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="server-watch", daemon=True)

    def begin_looks(self) -> None:
        self._thread.start()

    def end_looks(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._ready.set()  # nobody waits any more
        self._pool.clear()

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    def wait_until_ready(self) -> None:
        """Returns when the server is ready, or the watch is stopped."""
        self._ready.wait()

    def _look_on(self) -> None:
        misses = 0
        while not self._stopped.is_set():
            misses = 0 if self._answers() else misses + 1
            if misses == 0:
                self._ready.set()
            elif misses >= MISSES and self._ready.is_set() and not self._stopped.is_set():
                self._ready.clear()
                self._on_gone()
            self._stopped.wait(self._look_seconds)

    def _answers(self) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
                return self._pool.request("GET", self._url).status == 200
        except urllib3.exceptions.HTTPError:
            return False


def hold_election(settings: OperatorSettings, stop: threading.Event, *, server_url: str, selector: str) -> int:
    """Contend until ``stop`` is set.

    returns       the exit code
    raises        RefusedError when there is no cluster
    """
    with closing(connect_cluster()) as connection, ThreadPoolExecutor(1, thread_name_prefix="election") as threads:
        election = WriterElection(connection, settings, server_url=server_url, selector=selector)
        running = threads.submit(election.contend)
        while not running.done() and not stop.wait(STOP_LOOK_SECONDS):
            pass
        log.info("election stopping", pod=settings.identity)
        election.end_contest()
        running.result()
    return 0


class WriterElection:
    """The election of the process: it contends for the Lease while its server is ready.

    server_url    the server's ``/readyz``
    selector      labels of all pods that contend
    """

    def __init__(self, connection: KubeConnection, settings: OperatorSettings, *, server_url: str, selector: str) -> None:
        self._connection = connection
        self._settings = settings
        self._label = WriterLabel(settings.namespace, selector, settings.identity)
        self._server = ServerWatch(server_url, self._end_term, look_seconds=settings.lease_retry_seconds)
        self._stopped = threading.Event()
        self._term_over = threading.Event()

    def end_contest(self) -> None:
        """End ``contend``, which another thread is in."""
        self._stopped.set()
        self._term_over.set()
        self._server.end_looks()

    def contend(self) -> None:
        """Contend until stopped; then give the Lease back, if it is held."""
        self._server.begin_looks()
        while not self._stopped.is_set():
            self._server.wait_until_ready()
            self._term_over = threading.Event()
            if self._server.is_ready and not self._stopped.is_set():  # looked at last: whoever ends a term sets these first
                self._serve_term(self._term_over)

    def _end_term(self) -> None:
        log.warning("the server does not answer that it is ready; another may write")
        self._term_over.set()

    def _serve_term(self, over: threading.Event) -> None:
        """One term: wait for the Lease, keep the label here, and give the Lease back when the term is over."""
        settings = self._settings
        lead = Leadership(
            KubeApi(self._connection, timeouts=KUBE_TIMEOUTS),
            namespace=settings.namespace,
            name=settings.lease_name,
            identity=settings.identity,  # that of the pod: a restarted container goes on where the last one was
            timing=LeaseTiming(
                duration=settings.lease_duration_seconds,
                renew_deadline=settings.lease_renew_deadline_seconds,
                renew=settings.lease_renew_seconds,
                retry=settings.lease_retry_seconds,
            ),
            on_lost=lambda why: over.set(),
        )
        if lead.acquire(over):
            self._keep_label(lead, over)
        lead.release_lead()

    def _keep_label(self, lead: Leadership, over: threading.Event) -> None:
        api = KubeApi(self._connection, timeouts=KUBE_TIMEOUTS, fence=lead.fence)
        wait = 0.0
        while not over.wait(wait):
            try:
                self._label.move_here(api)
                wait = LABEL_CHECK_SECONDS
            except FencedError:
                return
            except HeadwaterError as fault:
                log.warning("the label was not moved", pod=self._label.pod, error=str(fault))
                wait = self._settings.lease_retry_seconds
