"""What Kubernetes says about realms and catalogs: kopf lists and watches them, and what it brings goes into the cache and the queue.

Its handlers only look (`on.event`): they write nothing, and keep nothing on the resources. kopf would take the operator's finalizer off
where it finds it, because no handler of its kind asks for one, so it is told another name here, which nobody uses.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import kopf
from kopf._cogs.clients import auth, errors, watching
from kopf._cogs.structs import credentials, references

from headwater.clock import Clock
from headwater.errors import MissingError, UnavailableError
from headwater_operator.kube import Connection, connect, error_of, resource_path
from headwater_operator.queueing import WorkQueue
from headwater_operator.resources import Key, ResourceCache

__all__ = ["Feed", "JitteredBackoffs", "feed_settings", "try_watch"]

GROUP, VERSION = "headwater.dev", "v1alpha1"
KINDS = {"realms": "Realm", "catalogs": "Catalog"}
_PLURALS = {kind: plural for plural, kind in KINDS.items()}
UNUSED_FINALIZER = "headwater.dev/not-put-on-by-anybody"
SETTLED_SECONDS = 0.005
"""Between two resources of a list that look as they should be."""
SECONDS_BETWEEN_LOOKS = 0.02
SECONDS_TO_CLOSE = 0.25
"""aiohttp does not wait until a connection with TLS is closed, and its guide says to sleep so long before the loop ends."""


class JitteredBackoffs(Iterable[float]):
    """Waits between attempts of one request, without end: an API server that is away is asked until it is back.

    It has no length: kopf counts what has one, and gives up, and with that the whole operator, at its end.
    """

    def __init__(self, *, longest_seconds: float = 15.0, chance: Callable[[], float] = random.random) -> None:
        self._longest = longest_seconds
        self._chance = chance

    def __iter__(self) -> Iterator[float]:
        wait = min(0.5, self._longest)
        while True:
            yield wait * (0.5 + self._chance())
            wait = min(wait * 2, self._longest)


@dataclass
class _FeedSettings(kopf.OperatorSettings):
    """kopf's settings, which it hands to each of its streams, and by which a stream finds who listens to it."""

    listener: Listener | None = None


def feed_settings(*, label_selector: str = "", instance: str = "", longest_wait_seconds: float = 15.0) -> kopf.OperatorSettings:
    """What differs from kopf's defaults, and why.

    instance      name of this process, shown where kopf names itself
    """
    settings = _FeedSettings()
    settings.persistence.finalizer = UNUSED_FINALIZER
    settings.posting.enabled = False
    settings.posting.reporting_component = "headwater-operator"
    settings.posting.reporting_instance = instance or "headwater-operator"
    settings.scanning.disabled = True  # no watch of namespaces and definitions, and no right to them
    settings.watching.server_timeout = 600  # an even rhythm of connections; kopf sends the text, and no server takes 600.0
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
        for plural in KINDS:
            settings.watching.label_selectors[GROUP, plural] = label_selector
    return settings


@dataclass
class Listener:
    """Hears each stream in passing: when it said something last, and what its lists hold.

    listed        told each resource of a list
    vanished      told the kind, the namespace (None: all of them) and all names of a list that is complete
    ended         told what ended a watch for good
    """

    clock: Clock
    listed: Callable[[dict[str, Any]], None]
    vanished: Callable[[str, str | None, set[Key]], None]
    ended: Callable[[Exception], None]
    heard_at: dict[tuple[str, str | None], float] = field(default_factory=dict)
    complete: set[tuple[str, str | None]] = field(default_factory=set)

    async def follow(
        self, stream: AsyncIterator[watching.Bookmark | Any], kind: str, namespace: str | None
    ) -> AsyncIterator[Any]:
        """The same stream without the resources of its list, which are taken in here and now, so that it is known when all of them are.

        A stream begins with a list, and so does one that had to begin anew: then what left in between is what the list lacks.
        """
        where, names = (kind, namespace), set[Key]()
        async for event in self._until_ended(stream):
            self.heard_at[where] = self.clock.monotonic()
            if event is watching.Bookmark.LISTED:
                self.vanished(kind, namespace, names)
                self.complete.add(where)
            elif event["type"] is None:
                names.add(_key_of(event["object"]))
                self.listed(event["object"])
                continue
            yield event

    async def _until_ended(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The stream, which stays silent after its end: kopf would wait five seconds for the other watches before it ends them.

        A version that is too old (HTTP 410) is no end, nor is a server that has too much to do (429): then the watch begins anew.
        """
        try:
            async for event in stream:
                yield event
        except (watching.WatchingError, errors.APIError) as fault:
            if isinstance(fault, errors.APIError) and fault.status in (410, 429):
                raise
            self.ended(fault)
            await asyncio.Event().wait()


class Feed:
    """The watches of both kinds, from the lists at their start to the end of the process.

    namespaces        empty for all
    connection        whose address and credentials the watches use, too; by itself as a pod, or as a kubeconfig says
    longest_wait_seconds  between two attempts of a request that fails, before jitter
    """

    def __init__(
        self,
        cache: ResourceCache,
        queue: WorkQueue[Key],
        *,
        clock: Clock,
        namespaces: Iterable[str] = (),
        label_selector: str = "",
        identity: str = "",
        connection: Connection | None = None,
        longest_wait_seconds: float = 15.0,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._namespaces = tuple(sorted(set(namespaces)))
        self._identity = identity
        self._login = _Login(connection or connect())
        self._listener = Listener(clock, self._take_in_listed, self._forget_vanished, self._end)
        self._settings = cast(
            _FeedSettings,
            feed_settings(label_selector=label_selector, instance=identity, longest_wait_seconds=longest_wait_seconds),
        )
        self._settings.listener = self._listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._is_stopped = False
        self._fault: Exception | None = None
        self._settled_until = 0.0

    @property
    def is_listed(self) -> bool:
        """Whether everything that there is has been seen once."""
        return len(self._listener.complete) == len(KINDS) * max(len(self._namespaces), 1)

    def ages(self) -> dict[str, float]:
        """Seconds since each kind was heard of last, be it a bookmark; where there are several watches, of the most silent one."""
        now, found = self._clock.monotonic(), dict[str, float]()
        for (kind, _), heard in list(self._listener.heard_at.items()):
            found[kind] = max(found.get(kind, 0.0), now - heard)
        return found

    def stop(self) -> None:
        """Ask it to end; from any thread, and before it has begun."""
        self._is_stopped = True
        if self._loop is not None and self._stopped is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def run(self) -> None:
        """Feed the cache and the queue until it is stopped. Needs a loop of its own: kopf ends with every task that was begun after it.

        raises        MissingError when the API server does not serve our kinds; UnavailableError when a watch ended for good: what was
                      missed is not known then, and only a new start helps
        """
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        if self._is_stopped:
            return
        insights = references.Insights()
        watchdog = asyncio.create_task(self._refuse_missing_kinds(insights), name="watchdog of the feed")
        operator = asyncio.create_task(self._operator(insights), name="feed")
        try:
            await asyncio.wait({watchdog, operator}, return_when=asyncio.FIRST_COMPLETED)
            if watchdog.done() and not operator.done():
                self._stopped.set()
            await operator
            if self._fault is not None:
                raise self._fault
        except (watching.WatchingError, errors.APIError, kopf.LoginError) as fault:
            raise UnavailableError(f"the watch of realms and catalogs ended: {_said(fault)}") from fault
        finally:
            watchdog.cancel()
            fault_of_watchdog = (await asyncio.gather(watchdog, return_exceptions=True))[0]
        if isinstance(fault_of_watchdog, Exception):
            raise fault_of_watchdog

    def _end(self, fault: Exception) -> None:
        self._fault = self._fault or fault
        if self._stopped is not None:
            self._stopped.set()

    async def _operator(self, insights: references.Insights) -> None:
        where: dict[str, Any] = {"namespaces": self._namespaces} if self._namespaces else {"clusterwide": True}
        await kopf.operator(
            registry=self._registry(),
            settings=self._settings,
            insights=insights,
            identity=cast(Any, self._identity or "headwater-operator"),
            standalone=True,
            stop_flag=self._stopped,
            **where,
        )

    async def _refuse_missing_kinds(self, insights: references.Insights) -> None:
        """kopf would watch nothing, and say nothing."""
        await insights.ready_resources.wait()
        missing = set(KINDS) - {resource.plural for resource in insights.watched_resources if resource.group == GROUP}
        if missing:
            names = " and ".join(f"{plural}.{GROUP}" for plural in sorted(missing))
            raise MissingError(f"the API server does not serve {names}: install the custom resource definitions first")
        await asyncio.Event().wait()

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        def log_in(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
            return self._login(settings)

        async def take_in(event: Any, **_: Any) -> None:
            self._take_in(event["type"], event["object"])

        kopf.on.login(registry=registry, id="login")(log_in)
        for plural in KINDS:
            kopf.on.event(GROUP, VERSION, plural, registry=registry, id=plural)(take_in)
        return registry

    def _take_in_listed(self, body: dict[str, Any]) -> None:
        """Of a list, what looks as it should be is looked at little by little, so that whatever else comes along need not wait for it."""
        if not self._cache.update(None, body):
            return
        key, now = _key_of(body), self._clock.monotonic()
        if not _looks_settled(body):
            self._queue.add(key)
            return
        self._settled_until = max(self._settled_until, now) + SETTLED_SECONDS
        self._queue.add_after(key, self._settled_until - now)

    def _take_in(self, event: str | None, body: dict[str, Any]) -> None:
        if self._cache.update(event, body):
            self._queue.add(_key_of(body))

    def _forget_vanished(self, kind: str, namespace: str | None, names: set[Key]) -> None:
        """What left while no watch was on: a list does not say so, it only lacks it."""
        for key in self._cache.keys(kind):
            if namespace in (None, key.namespace) and key not in names:
                self._cache.remove(key)
                self._queue.add(key)


def try_watch(
    connection: Connection, kind: str, *, namespace: str | None = None, label_selector: str = "", seconds: float = 30.0
) -> int:
    """List and watch one kind as a feed would, until the API server has begun to answer the watch.

    namespace     None for all
    seconds       how long that may take in all
    returns       how many resources the list had
    raises        what the refusal means, with the server's words; UnavailableError when there was no answer in time
    """
    settings = feed_settings(label_selector=label_selector)
    settings.networking.error_backoffs = (1.0,)  # a feed waits without end, and never says why
    path = resource_path(kind, namespace, None)
    try:
        return asyncio.run(asyncio.wait_for(_opened(connection, settings, kind, namespace), seconds))
    except errors.APIError as fault:
        raise error_of(fault.status, f"watch of {path}: {_said(fault)}") from fault
    except (watching.WatchingError, kopf.LoginError, TimeoutError) as fault:
        why = str(fault) or f"it was not open after {seconds:g} s"
        raise UnavailableError(f"watch of {path}: {why}") from fault


async def _opened(connection: Connection, settings: kopf.OperatorSettings, kind: str, namespace: str | None) -> int:
    vault = _OneLogin({"login": _Login(connection)(settings)})
    auth.vault_var.set(vault)
    path, resource = resource_path(kind, namespace, None), references.Resource(GROUP, VERSION, _PLURALS[kind], namespaced=True)
    stream = _heard_watch(
        settings=settings,
        resource=resource,
        namespace=namespace,
        operator_pause_waiter=asyncio.get_running_loop().create_future(),
    )
    count = 0
    try:
        async for event in stream:
            if event is watching.Bookmark.LISTED:
                await _answered(stream, vault)
                return count
            count += 1
        raise UnavailableError(f"watch of {path}: no answer to the list before it")
    except StopAsyncIteration as ended:
        why = "it ended as soon as it was opened: the version of the list before it is too old for the API server (410)"
        raise UnavailableError(f"watch of {path}: {why}") from ended
    finally:
        await stream.aclose()
        await vault.close()
        if connection.host.startswith("https:"):
            await asyncio.sleep(SECONDS_TO_CLOSE)


async def _answered(stream: AsyncGenerator[Any, None], vault: credentials.Vault) -> None:
    """Return when the watch that comes next has begun to answer: without changes it says nothing for a minute."""
    event = asyncio.ensure_future(anext(stream))
    try:
        async for _, _, context in vault.extended(auth.APIContext, "contexts"):
            while not event.done() and all(response.closed for response in context.responses):
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            break
        if event.done():
            event.result()
    finally:
        event.cancel()
        await asyncio.wait([event])


def _said(fault: Exception) -> str:
    """kopf's errors print their whole payload."""
    if not isinstance(fault, errors.APIError):
        return str(fault)
    return f"{fault.message or str(fault) or 'no reason was given'} ({fault.status})"


def _looks_settled(body: dict[str, Any]) -> bool:
    """Whether its last status says that it is as this generation of it declares."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}
    is_seen = status.get("observedGeneration") == metadata.get("generation") and not metadata.get("deletionTimestamp")
    return bool(is_seen and conditions.get("Ready") == "True")


def _key_of(body: dict[str, Any]) -> Key:
    metadata = body["metadata"]
    return Key(body["kind"], metadata.get("namespace") or "", metadata["name"])


class _Login:
    """The credentials of a connection, for kopf: those of now at first, and fresh ones when it asks again because they were refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_again = False

    def __call__(self, settings: kopf.OperatorSettings) -> kopf.ConnectionInfo:
        if self._is_again:
            self._connection.renew(self._connection.headers())
        self._is_again = True
        found = self._connection.credentials()
        return kopf.ConnectionInfo(
            server=found.server,
            ca_path=found.authority_file,
            insecure=found.is_insecure,
            scheme=found.scheme or None,
            token=found.token or None,
            certificate_path=found.certificate_file,
            private_key_path=found.key_file,
            proxy_url=found.proxy,
            trust_env=settings.networking.trust_env,
        )


class _OneLogin(credentials.Vault):
    """Credentials that nobody renews: where they are refused, kopf would wait for others."""

    async def invalidate(self, key: Any, info: Any, *, exc: Exception | None = None) -> None:
        raise exc or kopf.LoginError("the credentials were refused")


def _heard(
    watch: Callable[..., AsyncIterator[watching.Bookmark | Any]],
) -> Callable[..., AsyncGenerator[watching.Bookmark | Any, None]]:
    """kopf keeps bookmarks and the ends of lists to itself, and does not notice what left between two lists; this does.

    A list or watch that is refused because its version is too old (HTTP 410) begins anew, as it does when the stream itself says so.
    """

    async def continuous_watch(
        *, settings: kopf.OperatorSettings, resource: references.Resource, namespace: str | None, **others: Any
    ) -> AsyncGenerator[watching.Bookmark | Any, None]:
        stream = watch(settings=settings, resource=resource, namespace=namespace, **others)
        listener = settings.listener if isinstance(settings, _FeedSettings) else None
        if listener is not None and resource.group == GROUP:
            stream = listener.follow(stream, KINDS[resource.plural], namespace)
        try:
            async for event in stream:
                yield event
        except errors.APIError as fault:
            if fault.status != 410:
                raise

    return continuous_watch


kopf_watch = watching.continuous_watch
_heard_watch = _heard(kopf_watch)
setattr(watching, "continuous_watch", _heard_watch)  # noqa: B010 - a name of kopf's own, replaced once
