"""Watches of realms and catalogs: a kopf for each kind lists and watches it, and its events go into the cache and the queue.

kopf is used by its public interface alone. Its handlers only look (`on.event`): they write nothing, and keep nothing on the resources.
kopf would remove the operator's finalizer wherever it finds it, because no handler of its kind asks for one, so it is given another name
here, which nobody uses. What its interface does not report (what left between two watches, and that a silent watch is alive) `relist`
finds out.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import kopf
import structlog

from headwater.clock import Clock
from headwater.errors import HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater_operator.kube import KINDS, KubeApi, KubeConnection, resource_path
from headwater_operator.runtime.informer_cache import ResourceCache, ResourceKey
from headwater_operator.runtime.relist import Relister, WatchProgress, WatchTarget, resource_key_of
from headwater_operator.runtime.workqueue import WorkQueue

log = structlog.get_logger(__name__)

GROUP, VERSION = "headwater.dev", "v1alpha1"
PLURALS = {kind: path.plural for kind, path in KINDS.items() if path.group == GROUP}
UNUSED_FINALIZER = "headwater.dev/not-put-on-by-anybody"
SETTLED_SECONDS = 0.005
"""Seconds between two resources of a list that look healthy."""
SECONDS_TO_END = 1.0
"""Seconds that kopf gets to end by itself."""
SERVER_SECONDS = 600
"""Seconds after which the API server ends a watch, for a steady rhythm of connections. kopf sends the text, and servers refuse 600.0."""


class JitteredBackoffs(Iterable[float]):
    """Endless waits between attempts of one request: an unreachable API server is retried until it is back.

    It has no length: kopf would stop after as many attempts, and with it the whole operator.
    """

    def __init__(self, *, longest_seconds: float = 15.0, chance: Callable[[], float] = random.random) -> None:
        self._longest = longest_seconds
        self._chance = chance

    def __iter__(self) -> Iterator[float]:
        wait = min(0.5, self._longest)
        while True:
            yield wait * (0.5 + self._chance())
            wait = min(wait * 2, self._longest)


@dataclass(frozen=True, slots=True)
class WatchScope:
    """The watched resources: of these namespaces (none: of all), and with these labels."""

    namespaces: tuple[str, ...] = ()
    label_selector: str = ""

    def targets(self) -> list[WatchTarget]:
        return [target for kind in PLURALS for target in self.targets_of(kind)]

    def targets_of(self, kind: str) -> list[WatchTarget]:
        namespaces: list[str] | list[None] = sorted(set(self.namespaces)) or [None]
        return [WatchTarget(kind, namespace) for namespace in namespaces]


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """The intervals of a watch.

    relist_seconds        from one list that checks the watch to the next
    longest_wait_seconds  between two attempts of a request that fails, before jitter
    """

    relist_seconds: float = 60.0
    longest_wait_seconds: float = 15.0


def watch_settings(
    *, label_selector: str = "", instance: str = "", longest_wait_seconds: float = 15.0
) -> kopf.OperatorSettings:
    """The settings that differ from kopf's defaults, and why.

    instance      name of this process, shown where kopf names itself
    """
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = UNUSED_FINALIZER
    settings.posting.enabled = False
    settings.posting.reporting_component = "headwater-operator"
    settings.posting.reporting_instance = instance or "headwater-operator"
    settings.scanning.disabled = True  # no watch of namespaces and definitions, and no right to them
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.client_timeout = 660.0
    settings.watching.connect_timeout = 10.0
    settings.watching.inactivity_timeout = 70.0  # a live one brings a bookmark each minute
    settings.watching.chunk_size = 500
    settings.watching.initial_streaming = False  # ends the operator where the API server lacks it
    settings.networking.request_timeout = 30.0
    settings.networking.connect_timeout = 5.0
    settings.networking.error_backoffs = JitteredBackoffs(longest_seconds=longest_wait_seconds)
    settings.networking.enforce_retry_after = True
    settings.process.ultimate_exiting_timeout = 25.0  # a pod gets 30 s to end
    if label_selector:
        for plural in PLURALS.values():
            settings.watching.label_selectors[GROUP, plural] = label_selector
    return settings


class ResourceWatch:
    """The watches of both kinds, from the lists at their start to the end of the process.

    api           whose address and credentials kopf uses, too
    identity      name of this process
    on_listed     called with the kind each time that all resources of it were listed
    """

    def __init__(
        self,
        cache: ResourceCache,
        queue: WorkQueue[ResourceKey],
        api: KubeApi,
        *,
        clock: Clock,
        scope: WatchScope = WatchScope(),
        identity: str = "",
        timing: WatchTiming = WatchTiming(),
        on_listed: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._api = api
        self._clock = clock
        self._backoffs = JitteredBackoffs(longest_seconds=timing.longest_wait_seconds)
        self._progress = WatchProgress(scope.targets(), clock)
        self._relister = Relister(
            api,
            self._progress,
            label_selector=scope.label_selector,
            seconds=timing.relist_seconds,
            waits=self._backoffs,
            on_vanished=self._forget,
            on_ended=self._end,
            on_listed=on_listed,
        )
        self._kinds = [
            _KindWatch(
                kind,
                api,
                clock,
                scope,
                timing,
                identity=identity or "headwater-operator",
                take_in=self._take_in,
                on_restart=self._relister.wake,
            )
            for kind in PLURALS
        ]
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._fault: Exception | None = None
        self._settled_until = 0.0

    @property
    def is_listed(self) -> bool:
        """Whether every existing resource has been seen once."""
        return self._progress.is_complete

    def ages(self) -> dict[str, float]:
        """Seconds since the last sign of life of each kind's watch."""
        return self._progress.ages()

    def stop(self) -> None:
        """Request the end; from any thread, and even before it has begun."""
        self._stopped.set()
        for kind in self._kinds:
            kind.stop()

    def run(self) -> None:
        """Feed the cache and the queue until it is stopped.

        raises        NotFoundError when the API server does not serve our kinds; UnavailableError when they cannot be watched any more
        """
        self._refuse_missing_kinds()
        if self._stopped.is_set():
            return
        self._relister.start()
        try:
            self._run_kinds()
        finally:
            self._relister.stop()
        if self._fault is not None:
            raise self._fault

    def _refuse_missing_kinds(self) -> None:
        """Refuse a cluster without our kinds: kopf would watch nothing, and log nothing."""
        waits = iter(self._backoffs)
        while not self._stopped.is_set():
            try:
                missing = _kinds_not_served(self._api)
            except HeadwaterError as error:
                log.warning("the API server does not say what it serves", error=str(error))
                self._stopped.wait(next(waits))
                continue
            if not missing:
                return
            names = " and ".join(f"{plural}.{GROUP}" for plural in missing)
            raise NotFoundError(f"the API server does not serve {names}: install the custom resource definitions first")

    def _run_kinds(self) -> None:
        """Watch each kind in a thread until all have ended; a kind that cannot be watched any more ends the others."""
        threads = [
            threading.Thread(target=self._run_kind, args=(kind,), name=f"watch of {kind.kind}", daemon=True)
            for kind in self._kinds
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_kind(self, kind: _KindWatch) -> None:
        try:
            kind.run()
        except Exception as fault:  # noqa: BLE001 - run() raises it, in the thread of its caller
            self._end(fault)

    def _end(self, fault: Exception) -> None:
        with self._lock:
            self._fault = self._fault or fault
        self.stop()

    def _take_in(self, event: str | None, body: dict[str, Any]) -> None:
        """Handle what the watch delivers: each change, and with None as event each resource of the initial list."""
        if self._cache.update_resource(event, body):
            self._enqueue(event, body)
        if self._progress.note_event(event, body):
            self._relister.wake()

    def _enqueue(self, event: str | None, body: dict[str, Any]) -> None:
        """Enqueue the resource. Listed resources that look healthy are queued slowly, so that they do not delay others."""
        if event is not None or not _looks_settled(body):
            self._queue.enqueue(resource_key_of(body))
            return
        now = self._clock.monotonic()
        with self._lock:  # both kinds are listed at the same time
            self._settled_until = until = max(self._settled_until, now) + SETTLED_SECONDS
        self._queue.enqueue_after(resource_key_of(body), until - now)

    def _forget(self, key: ResourceKey, uid: str) -> None:
        """Remove a resource that was deleted while no watch was running."""
        self._cache.remove_resource(key, uid=uid)
        self._queue.enqueue(key)


class _KindWatch:
    """The watch of one kind, by a kopf of its own that is restarted when it ends.

    kopf ends all of its watches when one of them fails, such as by HTTP 410 within a list of several pages, and at its end it cancels
    every task of its loop. Kinds that shared a kopf or a loop would end each other's watches.

    take_in       called with the event and the body that kopf delivers
    on_restart    called when kopf has ended, and is about to be restarted
    """

    def __init__(
        self,
        kind: str,
        api: KubeApi,
        clock: Clock,
        scope: WatchScope,
        timing: WatchTiming,
        *,
        identity: str,
        take_in: Callable[[str | None, dict[str, Any]], None],
        on_restart: Callable[[], None],
    ) -> None:
        self.kind = kind
        self._api = api
        self._clock = clock
        self._scope = scope
        self._timing = timing
        self._identity = identity
        self._take_in = take_in
        self._on_restart = on_restart
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._stop_kopf: Callable[[], None] = lambda: None

    def stop(self) -> None:
        """Request the end; from any thread, and even before it has begun."""
        with self._lock:
            self._stopped.set()
            self._stop_kopf()

    def run(self) -> None:
        """Run kopf until it is stopped. It ends by itself on some errors, after most of which it can be restarted.

        Such errors are a refused watch whose version is too old (HTTP 410), a list whose version expires between two pages (HTTP 410),
        and an unknown error in the middle of a watch. The lists find deletions that happened in between.

        raises        UnavailableError when the kind cannot be listed any more
        """
        backoffs = JitteredBackoffs(longest_seconds=self._timing.longest_wait_seconds)
        waits = iter(backoffs)
        while not self._stopped.is_set():
            began = self._clock.monotonic()
            try:
                asyncio.run(self._operate())  # each time in a new loop: kopf's left-overs end with it
            except Exception as fault:  # noqa: BLE001 - kopf has logged it, and its errors have no public names
                self._refuse_ended_watch(fault)
                log.warning("a watch ended and is restarted", kind=self.kind)
            if self._clock.monotonic() - began > self._timing.relist_seconds:
                waits = iter(backoffs)
            self._on_restart()
            self._stopped.wait(next(waits))

    def _refuse_ended_watch(self, fault: Exception) -> None:
        """Raise where nothing can be listed any more, so that nothing can be watched either."""
        try:
            for target in self._scope.targets_of(self.kind):
                self._api.get_resource(str(target), {"limit": "1"})
        except (NotFoundError, RefusedError) as error:
            raise UnavailableError(f"the watch of realms and catalogs ended: {error}") from fault
        except HeadwaterError:
            return  # it is temporarily unreachable

    async def _operate(self) -> None:
        """Run kopf until it has ended. Raises the error that ended it, except for a stop."""
        stop_flag, ending, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

        def stop_kopf() -> None:
            with contextlib.suppress(RuntimeError):  # this loop has ended by itself
                loop.call_soon_threadsafe(stop_flag.set)

        with self._lock:
            self._stop_kopf = stop_kopf
            if self._stopped.is_set():
                return
        is_ending = asyncio.create_task(
            ending.wait()
        )  # before kopf, which at its end waits for every task that was begun after it
        operator = asyncio.create_task(self._run_kopf(stop_flag, ending))
        await asyncio.wait({is_ending, operator}, return_when=asyncio.FIRST_COMPLETED)
        await _end_soon(operator)
        is_ending.cancel()
        if not operator.cancelled():
            operator.result()
        elif not self._stopped.is_set():
            raise UnavailableError("kopf ended by itself")

    async def _run_kopf(self, stop_flag: asyncio.Event, ending: asyncio.Event) -> None:
        where: dict[str, Any] = {"namespaces": self._scope.namespaces} if self._scope.namespaces else {"clusterwide": True}
        await kopf.operator(
            registry=self._registry(ending),
            settings=watch_settings(
                label_selector=self._scope.label_selector,
                instance=self._identity,
                longest_wait_seconds=self._timing.longest_wait_seconds,
            ),
            identity=cast(Any, self._identity),
            standalone=True,
            stop_flag=stop_flag,
            **where,
        )

    def _registry(self, ending: asyncio.Event) -> kopf.OperatorRegistry:
        registry, login = kopf.OperatorRegistry(), _Login(self._api.connection)

        async def end(**_: Any) -> None:
            ending.set()

        def log_in(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
            return login(settings)

        async def take_in(event: Any, **_: Any) -> None:
            self._take_in(event["type"], event["object"])

        kopf.on.login(registry=registry, id="login")(log_in)
        kopf.on.cleanup(registry=registry, id="end")(end)
        kopf.on.event(GROUP, VERSION, PLURALS[self.kind], registry=registry, id=PLURALS[self.kind])(take_in)
        return registry


def try_watch(api: KubeApi, kind: str, *, namespace: str | None = None, label_selector: str = "") -> int:
    """List one kind and open a watch of it, as kopf does.

    namespace     None for all
    returns       how many resources the list had
    raises        the error of a refusal, with the server's words; UnavailableError when there was no answer
    """
    path = resource_path(kind, namespace, None)
    count = sum(map(len, api.pages(path, label_selector=label_selector or None, metadata_only=True)))
    selector = {"labelSelector": label_selector} if label_selector else {}
    version = api.get_resource(path, {"limit": "1", **selector})["metadata"]["resourceVersion"]
    others = {"allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": f"{SERVER_SECONDS}"}
    try:
        api.open_watch(path, {**others, **selector})
    except NotFoundError as ended:
        raise UnavailableError(f"watch of {path}: it ended as soon as it was opened: {ended}") from ended
    return count


def _kinds_not_served(api: KubeApi) -> list[str]:
    resources = (api.find_resource(f"/apis/{GROUP}/{VERSION}") or {}).get("resources") or []
    return sorted(set(PLURALS.values()) - {resource.get("name") for resource in resources})


async def _end_soon(operator: asyncio.Task[None]) -> None:
    """Cancel kopf until it has ended, after a while in which it may do so by itself.

    It waits five seconds for the watches that still run, and cancels them then. One that is just connecting takes this for a pause, begins
    anew, and waits for credentials that nobody renews any more; and kopf waits for it without end. The end of the loop cancels it again.
    """
    while not operator.done():
        await asyncio.wait({operator}, timeout=SECONDS_TO_END)
        operator.cancel()


def _looks_settled(body: dict[str, Any]) -> bool:
    """Whether its last status says that this generation of it is as declared."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition.get("type"): condition.get("status") for condition in status.get("conditions") or ()}
    is_seen = status.get("observedGeneration") == metadata.get("generation") and not metadata.get("deletionTimestamp")
    return bool(is_seen and conditions.get("Ready") == "True")


class _Login:
    """The credentials of a connection for one run of kopf: the current ones first, and fresh ones when it asks again after a refusal."""

    def __init__(self, connection: KubeConnection) -> None:
        self._connection = connection
        self._given: dict[str, str] | None = None

    def __call__(self, settings: kopf.OperatorSettings) -> kopf.ConnectionInfo:
        if self._given is not None:
            self._connection.renew(self._given)  # does nothing where another kind's refusal has renewed them
        self._given = self._connection.headers()
        credentials = self._connection.credentials()
        return kopf.ConnectionInfo(
            server=credentials.server,
            ca_path=credentials.authority_file,
            insecure=credentials.is_insecure,
            scheme=credentials.scheme or None,
            token=credentials.token or None,
            certificate_path=credentials.certificate_file,
            private_key_path=credentials.key_file,
            proxy_url=credentials.proxy,
            trust_env=settings.networking.trust_env,
        )
