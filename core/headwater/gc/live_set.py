"""The live set: ids of a realm's objects that stay, each with its reason, in nine bytes an object; and how rows are classified by it.

The exact part is a list of sorted runs of ids with a byte of reason beside each. It stays exact for everything that points to
something; leaves go to a Bloom filter once the budget is used up, so that a false positive can keep a dead row, and never ends a descent.

``ContentIdSet`` holds the ids of all content that kept commits hold, and decides which claims are released. ``save_live_set`` writes
the set into the realm itself, in rows that are garbage once the sweep is over: so a sweep outlives its process.

``RowClassifier`` says of a scanned row why it stays, or that it is garbage. A row stays when its object is in the live set, or for one
of the reasons that need no mark: it is young, under a fixed id, or of a type that this release does not know. A part beyond the number
of parts that its object has now is garbage although its object stays: a rewriting with fewer parts was interrupted before it deleted
the rest.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from uuid import UUID

from headwater.clock import Micros
from headwater.commits import MarkChunk
from headwater.errors import CorruptionError
from headwater.gc.bloom_filter import BloomFilter
from headwater.gc.retention import KeepReason
from headwater.store import ObjectId, ObjectKey, RealmStore, id_text, is_fixed, registered_type

CHUNK_BYTES = 300 * 1024
"""The size limit of one chunk: with its envelope it fits one row."""
_BODY_BYTES = CHUNK_BYTES - 4
_RUN = 4096
"""The size limit of one run, in ids: an insertion moves half as many on average."""
_SPARSE = 8
"""Where the run has this many times as many ids in between, adding one by one is quicker than merging."""
_MANY = 16
"""From this many ids on, it pays to look at them together."""
_BYTES_PER_MARK = 10
_REASONS = (KeepReason.HEAD, KeepReason.GRACE, KeepReason.RETENTION, KeepReason.RECORD)
"""A reason's place is its code in stored chunks: append only."""
_CODES = {why: code for code, why in enumerate(_REASONS)}
_HEADER = struct.Struct("<4sQQddQQQ")
_MAGIC = b"mrk1"


class LiveSet:
    """Ids of 63 bits, each with the first reason that was given for it.

    exact_bytes   memory for the exact part; once it is used up, ``mark_leaf`` adds to the filter
    expected      an estimate of how many marks there will be; the filter is sized for those that the exact part does not hold,
                  or for as many as that holds if this is more
    fpp           the filter's share of false positives at that size; above ``refuse_fpp`` it is over-full
    salt          another salt gives other false positives
    """

    def __init__(
        self, exact_bytes: int, *, expected: int = 0, fpp: float = 1e-5, refuse_fpp: float = 5e-5, salt: int = 0
    ) -> None:
        self.exact_limit = max(exact_bytes // _BYTES_PER_MARK, 1)
        self.expected = expected
        self._fpp = fpp
        self._refuse_fpp = refuse_fpp
        self._salt = salt
        # Invariant: the sum of the lengths of all runs.
        self._exact = 0
        # Invariant: the three lists are parallel. Runs are sorted and disjoint; run i has the ids from _lows[i] up to _lows[i + 1],
        # exclusive, and _lows[0] is 0, so that every id belongs into exactly one run. A code stands where its id stands.
        self._lows: list[int] = [0]
        self._runs: list[array[int]] = [array("Q")]
        self._whys: list[bytearray] = [bytearray()]
        # Invariant: holds leaves alone. A false positive for an object that points further would end the descent, and lose all below.
        self._filter: BloomFilter | None = None

    def __len__(self) -> int:
        """How many objects are marked; the filter's part is estimated."""
        return self._exact + (0 if self._filter is None else len(self._filter))

    @property
    def is_full(self) -> bool:
        """Whether the exact part is full: leaves go to the filter from then on."""
        return self._exact >= self.exact_limit

    @property
    def filter_bytes(self) -> int:
        """The size of the filter; 0 while everything is exact."""
        return 0 if self._filter is None else self._filter.size_bytes

    @property
    def fpp(self) -> float:
        """The estimated share of false positives; 0 while everything is exact."""
        return 0.0 if self._filter is None else self._filter.fpp

    @property
    def is_overfull(self) -> bool:
        """Whether so much was added beyond the estimate that the filter would keep too much garbage."""
        return self.fpp > self._refuse_fpp

    def mark(self, object_id: ObjectId, why: KeepReason) -> bool:
        """Mark an object exactly, whatever the budget says. Returns True if it was not marked exactly before."""
        place = bisect_right(self._lows, object_id) - 1
        run = self._runs[place]
        at = bisect_left(run, object_id)
        if at < len(run) and run[at] == object_id:
            return False  # the first reason stays
        run.insert(at, object_id)
        self._whys[place].insert(at, _CODES[why])
        self._exact += 1
        if len(run) > _RUN:
            self._split(place)
        return True

    def mark_many(self, object_ids: Sequence[ObjectId], why: KeepReason) -> None:
        """Mark many objects exactly; quick where their ids lie close together."""
        if len(object_ids) < _MANY:
            for object_id in object_ids:
                self.mark(object_id, why)
            return
        ascending = sorted(set(object_ids))
        at = 0
        while at < len(ascending):
            place = bisect_right(self._lows, ascending[at]) - 1
            end = bisect_left(ascending, self._lows[place + 1], at) if place + 1 < len(self._lows) else len(ascending)
            end = min(end, at + _RUN)
            self._lay_into(place, ascending[at:end], _CODES[why])
            at = end

    def mark_leaves(self, object_ids: Sequence[ObjectId], why: KeepReason) -> None:
        """Mark many objects that point to nothing."""
        room = max(self.exact_limit - self._exact, 0)
        self.mark_many(object_ids[:room], why)
        for object_id in object_ids[room:]:
            self.mark_leaf(object_id, why)

    def unmarked(self, object_ids: Sequence[ObjectId]) -> list[ObjectId]:
        """Returns the ids that are not marked exactly, each once, in their order."""
        distinct = dict.fromkeys(object_ids)
        if len(distinct) < _MANY:
            return [object_id for object_id in distinct if not self.is_exact(object_id)]
        once = list(distinct)
        return [object_id for object_id, why in zip(once, self._find_all_exactly(once), strict=True) if why is None]

    def mark_leaf(self, object_id: ObjectId, why: KeepReason) -> None:
        """Mark an object that points to nothing: exactly while the budget lasts, then in the filter."""
        if not self.is_full:
            self.mark(object_id, why)
        elif not self.is_exact(object_id):
            if self._filter is None:
                # Sized once: a filter cannot grow. One that is filled beyond this is over-full, and nothing is deleted by it.
                self._filter = BloomFilter(max(self.expected - self._exact, self._exact), self._fpp, self._salt)
            self._filter.add_id(object_id)

    def is_exact(self, object_id: ObjectId) -> bool:
        """Whether an object is marked in the exact part. The filter is not asked."""
        run = self._runs[bisect_right(self._lows, object_id) - 1]
        at = bisect_left(run, object_id)
        return at < len(run) and run[at] == object_id

    def reason_of(self, object_id: ObjectId) -> KeepReason | None:
        """Why an object stays; None if it is certainly not marked."""
        return self.reasons_of((object_id,))[0]

    def reasons_of(self, object_ids: Sequence[ObjectId]) -> list[KeepReason | None]:
        """Why each of these objects stays, in their order; fast where the ids lie close together, as in a scan."""
        if not object_ids:
            return []
        reasons = self._find_all_exactly(object_ids)
        if self._filter is not None:
            known = self._filter
            for at, why in enumerate(reasons):
                if why is None and object_ids[at] in known:
                    reasons[at] = KeepReason.FILTER
        return reasons

    def chunks(self) -> Iterator[bytes]:
        """The whole set as bytes: a header, the exact part, the filter; each chunk has a checksum and at most CHUNK_BYTES.

        Equal sets give equal chunks.
        """
        return map(_sealed, self._chunks())

    @classmethod
    def from_chunks(cls, chunks: Iterable[bytes]) -> LiveSet:
        """The set that ``chunks`` gave.

        raises        CorruptionError when a chunk is missing or damaged: the caller marks anew
        """
        given = map(_opened, chunks)
        header = next(given, b"")
        if len(header) != _HEADER.size or not header.startswith(_MAGIC):
            raise CorruptionError("the marks of a collection cannot be read: their header is missing or of another release")
        _, limit, exact, fpp, refuse_fpp, filter_bytes, capacity, salt = _HEADER.unpack(header)
        made = cls(limit * _BYTES_PER_MARK, fpp=fpp, refuse_fpp=refuse_fpp, salt=salt)
        # The header counts both parts: a set that lost a chunk would delete what that chunk had marked.
        while made._exact < exact:
            made._append(next(given, b""))
        pieces = list(given)
        if made._exact != exact or sum(map(len, pieces)) != filter_bytes:
            raise CorruptionError("the marks of a collection cannot be read: there are more or fewer than were written")
        if pieces:
            made._filter = BloomFilter.joined(capacity, salt, pieces)
        return made

    def __iter__(self) -> Iterator[ObjectId]:
        """Iterate over the ids that are marked exactly, in ascending order."""
        for run in self._runs:
            for number in run:
                yield ObjectId(number)

    def _chunks(self) -> Iterator[bytes]:
        pieces = [] if self._filter is None else list(self._filter.pieces(_BODY_BYTES))
        capacity = 0 if self._filter is None else self._filter.capacity
        yield _HEADER.pack(
            _MAGIC, self.exact_limit, self._exact, self._fpp, self._refuse_fpp, sum(map(len, pieces)), capacity, self._salt
        )
        ids: array[int] = array("Q")
        codes = bytearray()
        for run, whys in zip(self._runs, self._whys, strict=True):
            if (len(ids) + len(run)) * 9 > _BODY_BYTES:
                yield ids.tobytes() + codes
                ids, codes = array("Q"), bytearray()
            ids += run
            codes += whys
        if ids:
            yield ids.tobytes() + codes
        yield from pieces

    def _lay_into(self, place: int, ascending: list[ObjectId], code: int) -> None:
        """Mark ids that all belong into one run."""
        run, whys = self._runs[place], self._whys[place]
        start, end = bisect_left(run, ascending[0]), bisect_right(run, ascending[-1])
        if end - start > _SPARSE * len(ascending):
            for object_id in ascending:
                self.mark(ObjectId(object_id), _REASONS[code])
            return
        if start == end:
            fresh: Sequence[int] = ascending
            codes = bytes((code,)) * len(ascending)
        else:
            known = dict(zip(run[start:end], whys[start:end], strict=True))
            self._exact -= len(known)
            known = dict.fromkeys(ascending, code) | known  # in this order: the reason that was there first stays
            fresh = sorted(known)
            codes = bytes(map(known.__getitem__, fresh))
        run[start:end] = array("Q", fresh)
        whys[start:end] = codes
        self._exact += len(fresh)
        while len(self._runs[place]) > _RUN:
            self._split(place)
            place += len(self._runs[place]) <= _RUN

    def _split(self, place: int) -> None:
        """Split a run in halves. The last run keeps most of its ids in the first part, which does not grow any more while ids ascend."""
        run, whys = self._runs[place], self._whys[place]
        half = len(run) // 2 if place < len(self._runs) - 1 else len(run) - len(run) // 8
        self._runs[place : place + 1] = [run[:half], run[half:]]
        self._whys[place : place + 1] = [whys[:half], whys[half:]]
        self._lows.insert(place + 1, run[half])

    def _find_all_exactly(self, object_ids: Sequence[ObjectId]) -> list[KeepReason | None]:
        low, high = min(object_ids), max(object_ids)
        first, last = bisect_right(self._lows, low) - 1, bisect_right(self._lows, high) - 1
        start, end = bisect_left(self._runs[first], low), bisect_right(self._runs[last], high)
        between = (last - first) * _RUN + end - start
        if between > 4 * len(object_ids) + _RUN:
            return [self._find_exactly(object_id) for object_id in object_ids]
        known: dict[int, KeepReason] = {}
        for place in range(first, last + 1):
            since = start if place == first else 0
            until = end if place == last else len(self._runs[place])
            known.update(
                zip(self._runs[place][since:until], map(_REASONS.__getitem__, self._whys[place][since:until]), strict=True)
            )
        return [known.get(object_id) for object_id in object_ids]

    def _find_exactly(self, object_id: ObjectId) -> KeepReason | None:
        place = bisect_right(self._lows, object_id) - 1
        run = self._runs[place]
        at = bisect_left(run, object_id)
        return _REASONS[self._whys[place][at]] if at < len(run) and run[at] == object_id else None

    def _append(self, chunk: bytes) -> None:
        count, rest = divmod(len(chunk), 9)
        ids = array("Q", chunk[: count * 8])
        codes = bytearray(chunk[count * 8 :])
        # The checksum of each chunk says nothing about their order: a chunk given twice, or before its time, would break the runs.
        last = self._runs[-1][-1] if self._exact else -1
        if not count or rest or ids[0] <= last or max(codes) >= len(_REASONS):
            raise CorruptionError("the marks of a collection cannot be read: a chunk is missing, damaged or out of order")
        for start in range(0, count, _RUN):
            run, whys = ids[start : start + _RUN], codes[start : start + _RUN]
            if self._exact:
                self._lows.append(run[0])
                self._runs.append(run)
                self._whys.append(whys)
            else:
                self._runs[0], self._whys[0] = run, whys
            self._exact += len(run)


def _sealed(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "little") + body


def _opened(chunk: bytes) -> bytes:
    if int.from_bytes(chunk[:4], "little") != zlib.crc32(body := chunk[4:]):
        raise CorruptionError("the marks of a collection cannot be read: a chunk is damaged")
    return body


_BUCKETS = 256
_MIX = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF


class ContentIdSet:
    """Content ids as 63 bits of a hash. Two ids that share a hash count as one: that can keep a claim, and never release one.

    Hashes lie in buckets by their first bits. A bucket that has doubled is sorted, and its duplicates are removed.
    """

    def __init__(self) -> None:
        self._buckets: list[array[int]] = [array("Q") for _ in range(_BUCKETS)]
        # Invariant: by bucket, its length when it was sorted last. Buckets only grow in between, so an equal length means sorted.
        self._sorted = [0] * _BUCKETS

    def add_ids(self, content_ids: Iterable[bytes]) -> None:
        """Add ids, each as its 16 bytes."""
        buckets, bound = self._buckets, self._sorted
        for content_id in content_ids:
            number = _hash(content_id)
            place = number >> 55
            bucket = buckets[place]
            bucket.append(number)
            if len(bucket) > 2 * bound[place] + 1024:
                self._sort(place)

    def __contains__(self, content_id: object) -> bool:
        if not isinstance(content_id, UUID):
            return False
        number = _hash(content_id.bytes)
        bucket = self._sort(number >> 55)
        at = bisect_left(bucket, number)
        return at < len(bucket) and bucket[at] == number

    def __len__(self) -> int:
        return sum(len(self._sort(place)) for place in range(_BUCKETS))

    def chunks(self) -> Iterator[bytes]:
        """The whole set as bytes, in the format of ``LiveSet.chunks``: tests tell by them whether two sets are equal."""
        marks = LiveSet(1 << 62)
        for place in range(_BUCKETS):
            marks.mark_many([ObjectId(number) for number in self._sort(place)], KeepReason.HEAD)
        return marks.chunks()

    @classmethod
    def from_chunks(cls, chunks: Iterable[bytes]) -> ContentIdSet:
        """The set that ``chunks`` gave. Raises CorruptionError as ``LiveSet.from_chunks`` does."""
        made = cls()
        for number in LiveSet.from_chunks(chunks):
            made._buckets[number >> 55].append(number)
        return made

    def _sort(self, place: int) -> array[int]:
        bucket = self._buckets[place]
        if len(bucket) != self._sorted[place]:
            bucket = self._buckets[place] = array("Q", sorted(set(bucket)))
            self._sorted[place] = len(bucket)
        return bucket


def _hash(content_id: bytes) -> int:
    number = int.from_bytes(content_id, "big")
    return (((number ^ (number >> 64)) * _MIX) & _MASK) >> 1


def save_live_set(rows: RealmStore, marks: LiveSet, fence: Callable[[], None]) -> tuple[ObjectId, ...]:
    """Write the set, a row at a time; returns the rows' ids in their order."""
    # Nothing leads to these rows. They outlive a sweep, however often resumed, because they are younger than its cut-off.
    written = []
    for chunk in marks.chunks():
        fence()
        written.append(rows.new_id())
        rows.write_objects([(written[-1], MarkChunk(data=chunk))], are_new=True)
    return tuple(written)


def load_live_set(rows: RealmStore, chunks: Sequence[ObjectId]) -> LiveSet:
    """The set that ``save_live_set`` wrote. Raises CorruptionError when a part is missing or damaged: the caller marks anew."""
    fresh = rows.without_cache()

    def read(object_id: ObjectId) -> bytes:
        chunk = fresh.find_object(object_id, MarkChunk)
        if chunk is None:
            raise CorruptionError(f"marks {id_text(object_id)} of realm {rows.realm!r} are not there")
        return chunk.data

    return LiveSet.from_chunks(map(read, chunks))


_id = itemgetter(ObjectKey._fields.index("id"))
_part = itemgetter(ObjectKey._fields.index("part"))


class RowClassifier:
    """Classifies the rows of one scan, batch after batch, in constant memory. For one thread; ``marks`` is only read.

    cutoff        rows that are younger stay
    """

    def __init__(self, rows: RealmStore, marks: LiveSet, cutoff: Micros) -> None:
        self._marks = marks
        self._cutoff = cutoff
        self._left_overs = LeftoverParts(rows)
        self._known: dict[str, bool] = {}  # by type name

    def classify(self, batch: Sequence[ObjectKey]) -> tuple[list[KeepReason | None], int]:
        """Returns the reason why each row stays, None for garbage; and how many garbage rows are left-over parts."""
        reasons = self._marks.reasons_of(list(map(_id, batch)))
        if None in reasons:
            for at, why in enumerate(reasons):
                if why is None:
                    reasons[at] = self._unmarked(batch[at])
        if not any(map(_part, batch)):
            self._left_overs.pass_by(batch)
            return reasons, 0
        left = self._left_overs.among(batch, self._old(batch, reasons))
        for at, key in enumerate(batch) if left else ():
            if key in left:
                reasons[at] = None
        return reasons, len(left)

    def _unmarked(self, key: ObjectKey) -> KeepReason | None:
        # Young before all else: the objects of a commit that is being written are there before any reference leads to them.
        if key.created > self._cutoff:
            return KeepReason.FIXED if is_fixed(key.id) else KeepReason.YOUNG
        if is_fixed(key.id):
            return KeepReason.FIXED
        return None if self._is_known(key.type) else KeepReason.UNKNOWN

    def _old(self, batch: Sequence[ObjectKey], reasons: Sequence[KeepReason | None]) -> list[ObjectKey]:
        """The further parts of objects that stay, as far as they are old enough to be left over."""
        # A young part may be of a rewriting that has not written its first part yet.
        return [
            key
            for key, why in zip(batch, reasons, strict=True)
            if key.part and key.created <= self._cutoff and why not in (None, KeepReason.UNKNOWN)
        ]

    def _is_known(self, type_name: str) -> bool:
        """Whether this release knows a type. Rows of an unknown type stay: a later release may need them."""
        known = self._known.get(type_name)
        if known is None:
            known = self._known[type_name] = registered_type(type_name) is not None
        return known


_READ_TOGETHER = 20
"""How many first parts are read in one round trip, with their values: 7 MiB at most."""


class LeftoverParts:
    """Finds the left-over parts in one scan of a realm, batch by batch, in constant memory.

    The first part says how many parts an object has; a row with a higher number belongs to an older writing of it. A deletion of
    such a row on condition of the scanned creation time cannot hit a part of a newer writing, which has another time.
    """

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._latest: tuple[ObjectId, int] | None = None
        """The last first part that was scanned, and its count: where keys are ordered, the next batch begins with its others."""

    def pass_by(self, batch: Sequence[ObjectKey]) -> None:
        """A batch of first parts only: nothing in it is left over."""
        if batch:
            self._latest = (batch[-1].id, batch[-1].parts)

    def among(self, batch: Sequence[ObjectKey], asked: Collection[ObjectKey]) -> frozenset[ObjectKey]:
        """Returns the rows of ``asked`` that are left over. A first part that ``batch`` does not have is read.

        batch         every row of this part of the scan
        """
        counts = dict([] if self._latest is None else [self._latest])
        for key in batch:
            if key.part == 0:
                self._latest = (key.id, key.parts)
                counts[key.id] = key.parts
        further = [key for key in asked if key.part > 0]
        counts |= self._read({key.id for key in further} - counts.keys())
        # Without a first part nothing says how many there should be: the row stays.
        return frozenset(key for key in further if key.part >= counts.get(key.id, key.part + 1))

    def _read(self, asked: Collection[ObjectId]) -> dict[ObjectId, int]:
        """Read how many parts objects have, from their first parts. An object without a first part is left out."""
        ids, counts = sorted(asked), dict[ObjectId, int]()
        for start in range(0, len(ids), _READ_TOGETHER):
            keys = [(object_id, 0) for object_id in ids[start : start + _READ_TOGETHER]]
            first_parts = self._rows.store.backend.read_objects(self._rows.key, keys)
            counts |= {row.id: row.parts for row in first_parts if row is not None}
        return counts
