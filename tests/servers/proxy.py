"""A TCP proxy on loopback in front of any server, which cuts, swallows, delays or replaces what passes. It understands no protocol."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from collections.abc import Callable
from types import TracebackType

_CHUNK_BYTES = 1 << 16
_QUIET_SECONDS = 0.05
_CONNECT_SECONDS = 5.0


class _Mode(enum.Enum):
    PASS = enum.auto()
    DROP_REQUESTS = enum.auto()
    DROP_ANSWERS = enum.auto()
    REPLACE_ANSWERS = enum.auto()
    PRECEDE_REQUESTS = enum.auto()
    HANG = enum.auto()
    HANG_ANSWERS = enum.auto()


class Proxy:
    """``with Proxy(host, port) as proxy:`` and connect to ``proxy.host``, ``proxy.port``. Thread-safe.

    What is set acts on the next bytes that come, on connections that are open and on new ones, until the next thing is set; or
    ``times`` times, and then everything passes again. With ``holding`` it acts only on requests with these bytes in them, and on
    their answers: a driver that asks behind the back of its calls whether the server lives does not use up what is meant for a
    call. A connection of which something was swallowed stays dead until it is cut.
    """

    host = "127.0.0.1"

    def __init__(self, server_host: str, server_port: int) -> None:
        self._server = (server_host, server_port)
        self._lock = threading.Lock()
        self._mode = _Mode.PASS
        self._times: int | None = None
        self._holding = b""
        self._answer = b""
        self._event: Callable[[], object] | None = None
        self._round_trips = 0
        self._drops = 0
        self._links: set[_Link] = set()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def round_trips(self) -> int:
        """How often a client said something after the server had spoken, or first of all; on all connections so far."""
        return self._round_trips

    @property
    def drops(self) -> int:
        """How many requests and answers were dropped, swallowed, held up or replaced so far."""
        return self._drops

    def pass_on(self) -> None:
        """Let everything through."""
        self._set(_Mode.PASS)

    def drop_requests(self, *, times: int | None = None, holding: str = "") -> None:
        """Cut a connection when its client says something, which does not reach the server."""
        self._set(_Mode.DROP_REQUESTS, times, holding)

    def drop_answers(self, *, times: int | None = None, holding: str = "") -> None:
        """Let requests through, and cut the connection once the server has answered; the client gets nothing of that."""
        self._set(_Mode.DROP_ANSWERS, times, holding)

    def replace_answers(
        self, answer: bytes, *, meanwhile: Callable[[], object] | None = None, times: int | None = None, holding: str = ""
    ) -> None:
        """Let requests through, and once the server has answered, say this instead and cut the connection.

        answer        nothing: the connection is cut
        meanwhile     called between the server's answer and this one
        """
        self._answer, self._event = answer, meanwhile
        self._set(_Mode.REPLACE_ANSWERS, times, holding)

    def precede_requests(self, event: Callable[[], object], *, times: int | None = None, holding: str = "") -> None:
        """Call this before a request goes on to the server."""
        self._event = event
        self._set(_Mode.PRECEDE_REQUESTS, times, holding)

    def hang(self) -> None:
        """Swallow requests: the connection stays open, and nothing comes."""
        self._set(_Mode.HANG)

    def hang_answers(self) -> None:
        """Let requests through and swallow what the server answers."""
        self._set(_Mode.HANG_ANSWERS)

    def cut(self) -> None:
        """Cut every connection that there is now, whatever it is doing."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in list(self._threads):
            thread.join(_CONNECT_SECONDS)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _set(self, mode: _Mode, times: int | None = None, holding: str = "") -> None:
        with self._lock:
            self._mode, self._times, self._holding = mode, times, holding.encode()

    def _applies(self, mode: _Mode, link: _Link) -> bool:
        """Whether that is what shall be done to bytes that have just come; counts them."""
        with self._lock:
            if self._mode is not mode or self._holding not in link.request:
                return False
            self._drops += 1
            if self._times is not None:
                self._times -= 1
                if self._times == 0:
                    self._mode, self._times = _Mode.PASS, None
            return True

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True, name="proxy")
        with self._lock:
            self._threads = [known for known in self._threads if known.is_alive() or known.ident is None]
            self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._connect, client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server, timeout=_CONNECT_SECONDS)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = _Link(client, server)
        with self._lock:
            is_late = self._is_closed
            self._links.add(link)
        if is_late:
            link.cut()
        self._start(self._carry_answers, link)
        self._carry_requests(link)

    def _carry_requests(self, link: _Link) -> None:
        try:
            while data := link.client.recv(_CHUNK_BYTES):
                is_first, link.is_asking = not link.is_asking, True
                link.request = data if is_first else link.request + data
                if self._applies(_Mode.DROP_REQUESTS, link):
                    break
                if self._applies(_Mode.PRECEDE_REQUESTS, link) and self._event is not None:
                    self._event()
                if self._applies(_Mode.HANG, link):
                    link.is_dead = True
                if not link.is_dead:
                    if is_first:
                        self._count_round_trip()
                    link.server.sendall(data)
        except OSError:
            pass
        self._end(link)

    def _count_round_trip(self) -> None:
        with self._lock:
            self._round_trips += 1

    def _carry_answers(self, link: _Link) -> None:
        try:
            while data := link.server.recv(_CHUNK_BYTES):
                link.is_asking = False
                if self._applies(_Mode.DROP_ANSWERS, link):
                    _drain(link.server)
                    break
                if self._applies(_Mode.REPLACE_ANSWERS, link):
                    _drain(link.server)
                    if self._event is not None:
                        self._event()
                    link.client.sendall(self._answer)
                    break
                if self._applies(_Mode.HANG_ANSWERS, link):
                    link.is_dead = True
                if not link.is_dead:
                    link.client.sendall(data)
        except OSError:
            pass
        self._end(link)

    def _end(self, link: _Link) -> None:
        """Cut; whoever of the two directions comes last closes."""
        link.cut()
        with self._lock:
            link.directions -= 1
            if link.directions:
                return
            self._links.discard(link)
        link.client.close()
        link.server.close()


class _Link:
    """One client's connection and the one made for it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.directions = 2
        self.is_asking = False
        self.request = b""
        """What its client said last: so far while it is asking, and whole once the server answers."""
        self.is_dead = False

    def cut(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _drain(server: socket.socket) -> None:
    """Take what else it has to say, until it is quiet: what it was asked to do is done by then."""
    server.settimeout(_QUIET_SECONDS)
    with contextlib.suppress(TimeoutError):
        while server.recv(_CHUNK_BYTES):
            pass
