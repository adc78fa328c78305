"""The body of a request as it arrives: bounded in size and time for each request, and in size for all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from starlette.types import Receive

from headwater.settings import duration_text
from headwater_server.error_answers import OverloadedError, ProtocolError
from headwater_server.json_body import too_large_error

_DISCARD_SECONDS: Final = 2.0
_DISCARD_TIMES: Final = 4
"""How much more than the limit is received and thrown away, as a multiple of it."""


class ClientGoneError(Exception):
    """The client closed its connection before the request was complete: nobody waits for an answer, and nothing was done."""


class BodyBudget:
    """Bytes that the bodies of all requests may take together while they are received and worked on. Used by the event loop alone."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.taken_bytes = 0

    def reserve(self, count: int) -> None:
        """raises OverloadedError"""
        if self.taken_bytes + count > self._limit_bytes:
            raise OverloadedError("the server receives as many bytes as it keeps in memory; send the request again in a moment")
        self.taken_bytes += count

    def give_back(self, count: int) -> None:
        self.taken_bytes -= count


class BodyReader:
    """Receives the body of one request; what it took of the budget is given back by ``release``."""

    def __init__(self, receive: Receive, headers: Mapping[str, str], budget: BodyBudget, *, limit_bytes: int) -> None:
        self._receive = receive
        self._declared = int(headers.get("content-length") or 0)
        self._awaits_go_ahead = headers.get("expect", "").lower() == "100-continue"
        self._budget = budget
        self._limit_bytes = limit_bytes
        self._taken_bytes = 0

    async def read(self, *, seconds: float) -> bytes:
        """The whole body.

        raises        ProtocolError: 413 for a body that is larger than the limit, 408 for one that does not come; OverloadedError;
                      ClientGoneError
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._read()
        except TimeoutError:
            raise ProtocolError(
                f"the body did not arrive within {duration_text(seconds)}",
                status=408,
                type_="RequestTimeoutException",
                is_closing=True,
            ) from None

    def release(self) -> None:
        self._budget.give_back(self._taken_bytes)
        self._taken_bytes = 0

    async def _read(self) -> bytes:
        body = bytearray()
        if self._declared > self._limit_bytes:
            await self._refuse(is_more=True)
        while True:
            message = await self._next_message()
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > self._limit_bytes:
                await self._refuse(is_more=message.get("more_body", False))
            self._budget.reserve(len(chunk))
            self._taken_bytes += len(chunk)
            body += chunk
            if not message.get("more_body", False):
                return bytes(body)

    async def _next_message(self) -> Mapping[str, Any]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        return message

    async def _refuse(self, *, is_more: bool) -> NoReturn:
        """Raise, but first throw away what comes for a moment: a client reads no answer while it sends, and closing would reset it."""
        discarded = 0
        try:
            async with asyncio.timeout(_DISCARD_SECONDS):
                while is_more and not self._awaits_go_ahead and discarded <= _DISCARD_TIMES * self._limit_bytes:
                    message = await self._next_message()
                    discarded += len(message.get("body", b""))
                    is_more = message.get("more_body", False)
        except TimeoutError:
            pass
        raise too_large_error(self._limit_bytes)
