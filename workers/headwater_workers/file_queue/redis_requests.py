"""The queue of requests in a Redis: every change is one script, so that no crash leaves half of it.

Keys, all with the prefix ``{queue}:``, whose braces keep them in one slot of a cluster:

turns         sorted set of the tables with waiting requests, by the number of the turn in which each was last served
turn          the number of the last turn
wait:TABLE    list of waiting messages
held          sorted set of the batches that are held or delayed, by the time (ms, of this Redis) when they come back
batch:ID      list of messages of a batch; the id begins with the table, and says after it whether it is held (h) or delayed (d)
slots         sorted set of the batches that count against the cap, by the end of their lease
bell          list of at most one element, on which readers block
aside         hash of what was set aside, by key; ``aside-ids`` finds the key by table and id of the request
counts        hash of counters

A message is 16 bytes of its key, a byte of strikes, a byte of tries, and the body.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
from kombu.connection import Connection
from kombu.exceptions import OperationalError
from redis import exceptions

from headwater.errors import StoreFullError, UnavailableError
from headwater.redaction import without_logins
from headwater.typed_values import decode_msgpack
from headwater_workers.file_queue.request_queue import (
    LEASE_SECONDS,
    QueuedRequest,
    QueueFigures,
    RequestBatch,
    SetAsideRequest,
    Settlement,
)

PUSH_BYTES = 1024 * 1024
"""A push of more than this is several scripts: a Redis does nothing else meanwhile."""
SOCKET_SECONDS = 10
_HEAD_BYTES = 18

_RING = """
local function ring(p)
  if redis.call('LLEN', p .. 'bell') == 0 then redis.call('LPUSH', p .. 'bell', 1) end
end
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function await_turn(p, name)
  redis.call('ZADD', p .. 'turns', 'NX', redis.call('GET', p .. 'turn') or 0, name)
end
"""
_PUSH = (
    _RING
    + """
local p = KEYS[1]
for i = 2, #ARGV do redis.call('RPUSH', p .. 'wait:' .. ARGV[1], ARGV[i]) end
await_turn(p, ARGV[1])
ring(p)
"""
)
# Each take is a turn, also one that empties a table: whatever comes to the table later queues behind those that wait now.
# A held batch whose lease ended was lost by its reader: each of its messages gets a strike. A delayed one comes back as it is.
_TAKE = (
    _RING
    + """
local p, limit, cap, lease, name = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', p .. 'held', '-inf', now, 'LIMIT', 0, 100)) do
  local owner, state = string.match(id, '^([^|]+)|(.)')
  for _, m in ipairs(redis.call('LRANGE', p .. 'batch:' .. id, 0, -1)) do
    if state == 'h' then
      m = string.sub(m, 1, 16) .. string.char(math.min(255, (string.byte(m, 17) or 0) + 1)) .. string.sub(m, 18)
    end
    redis.call('RPUSH', p .. 'wait:' .. owner, m)
  end
  redis.call('DEL', p .. 'batch:' .. id)
  redis.call('ZREM', p .. 'held', id)
  await_turn(p, owner)
end
redis.call('ZREMRANGEBYSCORE', p .. 'slots', '-inf', now)
if redis.call('ZCARD', p .. 'slots') >= cap then return nil end
local owner = redis.call('ZRANGE', p .. 'turns', 0, 0)[1]
if not owner then return nil end
local wait = p .. 'wait:' .. owner
local messages, count = redis.call('LRANGE', wait, 0, limit - 1), 0
for i, m in ipairs(messages) do
  if (string.byte(m, 17) or 0) > 0 then
    if i == 1 then count = 1 end
    break
  end
  count = i
end
local id = owner .. '|h|' .. name
local result = {id, owner}
for i = 1, count do
  result[i + 2] = messages[i]
  redis.call('RPUSH', p .. 'batch:' .. id, messages[i])
end
redis.call('LTRIM', wait, count, -1)
if count > 0 then
  redis.call('ZADD', p .. 'held', now + lease, id)
  redis.call('ZADD', p .. 'slots', now + lease, id)
end
local turn = redis.call('INCR', p .. 'turn')
if redis.call('EXISTS', wait) == 1 then
  redis.call('ZADD', p .. 'turns', turn, owner)
else
  redis.call('ZREM', p .. 'turns', owner)
end
if redis.call('ZCARD', p .. 'turns') > 0 then ring(p) end
if count == 0 then return nil end
return result
"""
)
_SETTLE = (
    _RING
    + """
local p, id, owner, name, delay, later = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
redis.call('ZREM', p .. 'slots', id)
if redis.call('ZCARD', p .. 'turns') > 0 then ring(p) end
if redis.call('ZREM', p .. 'held', id) == 0 then return 0 end
redis.call('DEL', p .. 'batch:' .. id)
if later > 0 then
  local delayed = owner .. '|d|' .. name
  for i = 6, 5 + later do redis.call('RPUSH', p .. 'batch:' .. delayed, ARGV[i]) end
  redis.call('ZADD', p .. 'held', now_ms() + delay, delayed)
end
for i = 6 + later, #ARGV, 3 do
  redis.call('HSET', p .. 'aside', ARGV[i], ARGV[i + 1])
  if ARGV[i + 2] ~= '' then redis.call('HSET', p .. 'aside-ids', ARGV[i + 2], ARGV[i]) end
end
return 1
"""
)
_RENEW = (
    _RING
    + """
local ends = now_ms() + tonumber(ARGV[1])
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1] .. 'held', 'XX', ends, ARGV[i])
  redis.call('ZADD', KEYS[1] .. 'slots', 'XX', ends, ARGV[i])
end
"""
)


class RedisRequestQueue:
    """A queue in the Redis of the workers.

    cap           batches that are held at the same time, by all readers
    """

    def __init__(self, url: str, queue: str, *, cap: int = 1, lease_seconds: float = LEASE_SECONDS) -> None:
        self._url = url
        self._prefix = f"{{{queue}-files}}:"
        self._cap = cap
        self._lease = round(lease_seconds * 1000)

    def push(self, table: str, requests: Sequence[QueuedRequest]) -> None:
        with self._reached():
            for chunk in _chunks([_encode(request) for request in requests]):
                self._push(keys=[self._prefix], args=[table, *chunk])

    def take(self, limit: int) -> RequestBatch | None:
        with self._reached():
            taken = self._take(keys=[self._prefix], args=[limit, self._cap, self._lease, uuid.uuid4().hex])
        if taken is None:
            return None
        return RequestBatch(taken[0].decode(), taken[1].decode(), tuple(map(_decode, taken[2:])))

    def wait(self, seconds: float) -> None:
        with self._reached():
            self._client.blpop([f"{self._prefix}bell"], timeout=seconds)

    def settle_batch(self, batch: RequestBatch, settlement: Settlement) -> None:
        later = [_encode(request) for request in settlement.later]
        aside = chain.from_iterable(
            (each.key, msgspec.msgpack.encode(each), _aside_id(each.table, each.request)) for each in settlement.set_aside
        )
        delay = round(settlement.delay_seconds * 1000)
        with self._reached():
            self._settle(keys=[self._prefix], args=[batch.id, batch.table, uuid.uuid4().hex, delay, len(later), *later, *aside])

    def renew_batches(self, batches: Sequence[RequestBatch]) -> None:
        with self._reached():
            self._renew(keys=[self._prefix], args=[self._lease, *(batch.id for batch in batches)])

    def add_counts(self, counts: Mapping[str, int]) -> None:
        with self._reached(), self._client.pipeline(transaction=False) as pipeline:
            for name, count in counts.items():
                pipeline.hincrby(f"{self._prefix}counts", name, count)
            pipeline.execute()

    def has_requests(self) -> bool:
        with self._reached():
            return bool(self._client.exists(f"{self._prefix}turns", f"{self._prefix}held"))

    def figures(self) -> QueueFigures:
        with self._reached():
            client, prefix = self._client, self._prefix
            tables = [name.decode() for name in client.zrange(f"{prefix}turns", 0, -1)]
            batches = [name.decode() for name in client.zrange(f"{prefix}held", 0, -1)]
            with client.pipeline(transaction=False) as pipeline:
                for name in (*(f"wait:{table}" for table in tables), *(f"batch:{batch}" for batch in batches)):
                    pipeline.llen(prefix + name)
                lengths = pipeline.execute()
            held: dict[str, dict[str, int]] = {"h": {}, "d": {}}
            for batch, length in zip(batches, lengths[len(tables) :], strict=True):
                table, state, _ = batch.split("|")
                held[state][table] = held[state].get(table, 0) + length
            counts = {name.decode(): int(count) for name, count in client.hgetall(f"{prefix}counts").items()}
            waiting = dict(zip(tables, lengths[: len(tables)], strict=True))
            return QueueFigures(waiting, held["h"], held["d"], client.hlen(f"{prefix}aside"), counts)

    def find_reasons(self, table: str, requests: Sequence[str]) -> dict[str, str]:
        if not requests:
            return {}
        with self._reached():
            keys = self._client.hmget(f"{self._prefix}aside-ids", [_aside_id(table, request) for request in requests])
            there = [key for key in keys if key is not None]
            texts = self._client.hmget(f"{self._prefix}aside", there) if there else []
        records = [decode_msgpack(text, SetAsideRequest) for text in texts if text is not None]
        return {record.request: record.reason for record in records}

    def list_set_aside(self) -> list[SetAsideRequest]:
        with self._reached():
            texts = self._client.hvals(f"{self._prefix}aside")
        records = [decode_msgpack(text, SetAsideRequest) for text in texts]
        return sorted(records, key=lambda record: (record.time, record.key))

    def retry_set_aside(self, keys: Sequence[str]) -> int:
        records = [record for record in self.list_set_aside() if record.key in keys]
        for record in records:  # twice in the queue is harmless, nowhere is not: so first the push
            self.push(record.table, [QueuedRequest(record.key, record.body)])
            self._forget_aside(record)
        return len(records)

    def discard_set_aside(self, keys: Sequence[str]) -> int:
        records = [record for record in self.list_set_aside() if record.key in keys]
        for record in records:
            self._forget_aside(record)
        return len(records)

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._connection.release()  # type: ignore[no-untyped-call]  # kombu carries few types

    def _forget_aside(self, record: SetAsideRequest) -> None:
        with self._reached(), self._client.pipeline() as pipeline:
            pipeline.hdel(f"{self._prefix}aside", record.key)
            pipeline.hdel(f"{self._prefix}aside-ids", _aside_id(record.table, record.request))
            pipeline.execute()

    @cached_property
    def _connection(self) -> Connection:
        options = {"socket_timeout": SOCKET_SECONDS, "socket_connect_timeout": SOCKET_SECONDS}
        return Connection(self._url, transport_options=options)  # type: ignore[no-untyped-call]  # as above

    @cached_property
    def _client(self) -> Any:
        """A client with a pool of connections, made by kombu, so that a URL means the same as to Celery."""
        channel = self._connection.channel()  # type: ignore[no-untyped-call]  # as above
        with channel.conn_or_acquire() as client:
            return client

    @cached_property
    def _push(self) -> Any:
        return self._client.register_script(_PUSH)

    @cached_property
    def _take(self) -> Any:
        return self._client.register_script(_TAKE)

    @cached_property
    def _settle(self) -> Any:
        return self._client.register_script(_SETTLE)

    @cached_property
    def _renew(self) -> Any:
        return self._client.register_script(_RENEW)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        place = without_logins(self._url).partition("?")[0]
        try:
            yield
        except exceptions.OutOfMemoryError as fault:
            raise StoreFullError(f"the broker {place} is full, no request was taken: {fault}") from fault
        except (exceptions.RedisError, OperationalError, OSError) as fault:
            self._forget_connections()
            raise UnavailableError(f"the broker {place} does not do what it is asked: {without_logins(str(fault))}") from fault

    def _forget_connections(self) -> None:
        """Close the idle connections: a Redis that became a replica keeps them open, and new ones lead to the primary."""
        if "_client" in self.__dict__:
            self._client.connection_pool.disconnect(inuse_connections=False)


def _encode(request: QueuedRequest) -> bytes:
    return bytes.fromhex(request.key) + bytes((min(255, request.strikes), min(255, request.tries))) + request.body


def _decode(message: bytes) -> QueuedRequest:
    if len(message) < _HEAD_BYTES:  # not of ours: as a body that nobody can read it is set aside
        return QueuedRequest(uuid.uuid4().hex, message)
    return QueuedRequest(message[:16].hex(), message[_HEAD_BYTES:], message[16], message[17])


def _aside_id(table: str, request: str) -> str:
    return f"{table}/{request}" if request else ""


def _chunks(messages: Sequence[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for message in messages:
        if chunk and size + len(message) > PUSH_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += len(message)
    if chunk:
        yield chunk
