"""Claims: which table of the realm owns a table uuid and its places in storage. Two tables that share files would delete each other's.

The reference ``claims`` has the index ``by-uuid`` (16 bytes) and ``by-location`` (the normalized text), with an entry for each
place of a table: its location, and further places that it writes to. Values are 8 bytes catalog id, 16 bytes content id and
8 bytes of the time of the last claim. A claim is taken before the table's commit. The collector releases it once no kept commit holds
the table. Earlier, ``place_releases`` lets go the places of a table that only history holds.

The index ``released`` names such tables, under the keys of ``homes``, until the collector would have released their claims: what holds
them must not become the head of a branch again, and their files may not be purged yet. A table is named there before its places are let
go, and from then on nothing brings it to a branch without taking its claims again, by which its name goes.

The index ``homes`` names the tables that are at home in their catalog, which created or adopted them; all others are its guests. Keys
are 8 bytes realm key, 8 bytes catalog id and 16 bytes content id: a realm that is loaded from an archive has another key, and so only
guests. Values are like those of claims. Whoever takes a claim writes its time here, too, and a time that is older than a claim of the
table is void: an earlier release, which does not know this index, released the claim meanwhile and took it again.

``stored_places`` reads a table's places from the metadata that a catalog has stored with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.content import derive_content_id
from headwater.catalogs.registry import find_definition
from headwater.catalogs.stored_metadata import read_fields
from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import ConflictError, CorruptionError, NotFoundError, RefusedError
from headwater.iceberg import PATH_PROPERTIES, comparable_location
from headwater.index import KEY_BYTES, Index, IndexValue
from headwater.store import ObjectId, RealmReader, RealmStore

CLAIMS = "claims"
BY_UUID = "by-uuid"
BY_LOCATION = "by-location"
HOMES = "homes"
RELEASED = "released"
PURGING = "0" * 16
"""The id of no catalog: who deletes the files of a content that nothing holds any more claims them in its name."""

_VALUE_BYTES = 8 + 16 + 8
_LOCATION = "location "


def normalise_location(location: str) -> str:
    """Normalize a location so that each place has one text.

    Schemes that name the same storage become one, hosts are in lower case, ``file:`` paths have three slashes, and no text ends in
    a slash.

    raises        RefusedError for a relative path, a segment ``.`` or ``..``, or more than 500 bytes
    """
    text = comparable_location(location)
    if len(text.encode()) > KEY_BYTES:
        raise RefusedError(f"location {location[:60]!r}... has {len(text.encode())} bytes; {KEY_BYTES} are allowed")
    return text


def places_around(location: str) -> list[bytes]:
    """The places that enclose a location of any length, outermost first, and the location itself, normalized as in claims.

    raises        RefusedError for a text that is not a location
    """
    return _enclosing(comparable_location(location).encode())


@dataclass(frozen=True, slots=True)
class ClaimOwner:
    """The owner of a claim, and the time when it was taken last."""

    catalog_id: str
    content_id: UUID
    taken: Micros

    def has_taken(self, claim: TableClaim) -> bool:
        return (self.catalog_id, self.content_id) == (claim.catalog_id, claim.content_id)

    def to_value(self) -> IndexValue:
        return IndexValue(None, bytes.fromhex(self.catalog_id) + self.content_id.bytes + self.taken.to_bytes(8, "big"))

    @classmethod
    def from_value(cls, value: IndexValue) -> ClaimOwner:
        data = bytes(value.data)
        if len(data) != _VALUE_BYTES:
            raise CorruptionError(f"a claim of {len(data)} bytes; {_VALUE_BYTES} would be right")
        return cls(data[:8].hex(), UUID(bytes=data[8:24]), Micros(int.from_bytes(data[24:], "big")))


@dataclass(frozen=True, slots=True)
class TableClaim:
    """The claim of a table to its uuid (where the format has one) and its places.

    content_id    the id under which the table is, or will be, put
    paths         where it writes besides its location
    is_home       its catalog creates the table: it is at home there, unless claims of it exist already, which keep what they say
    """

    catalog_id: str
    content_id: UUID
    location: str
    table_uuid: UUID | None = None
    paths: tuple[str, ...] = ()
    is_home: bool = False

    def places(self) -> tuple[bytes, ...]:
        """Its location and its paths, normalised; a path that lies within another place of its own is left out.

        raises        RefusedError for a text that is not a location
        """
        location = normalise_location(self.location)
        places = [location]
        for path in sorted({normalise_location(path) for path in self.paths}, key=len):
            if not any(f"{path}/".startswith(f"{place}/") for place in places):
                places.append(path)
        return tuple(place.encode() for place in places)


@dataclass(frozen=True, slots=True)
class ClaimConflict:
    """The reason why a claim was not taken: a wanted place equals, encloses or lies within one of ``owner``.

    The message names what was wanted, and nothing of the owner: the caller may not be allowed to know that it exists.
    """

    claim: TableClaim
    wanted: str
    held: str
    owner: ClaimOwner

    @property
    def is_of_place(self) -> bool:
        return self.wanted.startswith(_LOCATION)

    @property
    def held_place(self) -> str:
        """The place that the owner has, of a conflict of places."""
        return self.held.removeprefix(_LOCATION)

    def is_over(self, owners: Container[ClaimOwner]) -> bool:
        """True for a place of one of these owners, in the claim's own catalog, whose claim is the one that was seen."""
        return self.is_of_place and self.owner.catalog_id == self.claim.catalog_id and self.owner in owners

    def __str__(self) -> str:
        if self.owner.catalog_id == PURGING:
            return f"{self.wanted} overlaps a place that is being purged"
        if self.wanted.startswith(_LOCATION):
            return f"{self.wanted} overlaps a place of another table"
        return f"{self.wanted} belongs to another table"


class TableClaims:
    """The claims of the realm that ``rows`` is a handle on."""

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows

    @property
    def rows(self) -> RealmStore:
        """The rows of the realm."""
        return self._rows

    def find_catalog(self, owner: ClaimOwner) -> CatalogDefinition | None:
        """The definition of the catalog that has a claim, also of a deleted one; None: it is gone."""
        return find_definition(self._rows, catalog_id=owner.catalog_id)

    def take_claims(
        self, claims: Sequence[TableClaim], *, over: Container[ClaimOwner] = (), fence: Callable[[], None] | None = None
    ) -> tuple[ClaimConflict, ...]:
        """Take a batch of claims in one commit. A claim that its owner already has gets the present time; one in conflict is not taken.

        over          announced owners of the same catalog, whose places are let go where they are in the way: only history holds them
        returns       the conflicts with existing claims, or with earlier ones of the batch; none: all were taken
        raises        RefusedError for a text that is not a location
        """
        return self._take(claims, f"claim {len(claims)} tables", fence, is_adoption=False, over=over)

    def adopt_tables(
        self, claims: Sequence[TableClaim], *, fence: Callable[[], None] | None = None
    ) -> tuple[ClaimConflict, ...]:
        """Take claims, and make their tables at home in their catalog, whoever created them. Returns and raises as ``take_claims``."""
        return self._take(claims, f"adopt {len(claims)} tables", fence, is_adoption=True)

    def _take(
        self,
        claims: Sequence[TableClaim],
        message: str,
        fence: Callable[[], None] | None,
        *,
        is_adoption: bool,
        over: Container[ClaimOwner] = (),
    ) -> tuple[ClaimConflict, ...]:
        places = [claim.places() for claim in claims]

        def change(tx: Transaction) -> tuple[ClaimConflict, ...]:
            conflicts = []
            contested = _contested(tx.index, claims, places)
            homes = _homes_of(tx, self._rows, claims, places)
            released = _released_of(tx, self._rows, claims)
            for at, (claim, wanted) in enumerate(zip(claims, places, strict=True)):
                found = list(_conflicts(tx.index, claim, wanted)) if at in contested else []
                conflict = next(
                    (each for each in found if not (each.is_over(over) and _is_announced(tx, self._rows, each.owner))), None
                )
                if conflict is None:
                    for each in found:
                        _let_go(tx, self._rows, each.held_place.encode(), each.owner)
                    key = home_key(self._rows, claim.catalog_id, claim.content_id)
                    # later than the claim that was announced: whoever is about to let go its places sees that this is another one
                    time = Micros(max(tx.time, released[key].taken + 1)) if key in released else tx.time
                    _put_claim(tx, claim, wanted, time)
                    tx.index(RELEASED).remove(key)
                    _put_home(tx, self._rows, claim, time, is_home=is_adoption or claim in homes)
                else:
                    conflicts.append(conflict)
            return tuple(conflicts)

        return commit_change(self._rows, CLAIMS, change, message=message, fence=fence).result

    def release_own(self, claims: Sequence[TableClaim], *, fence: Callable[[], None] | None = None) -> int:
        """Release claims that their owner holds; returns the number of entries removed. For claims with which nothing was put.

        raises        RefusedError for a text that is not a location
        """
        entries = [(BY_LOCATION, place, claim) for claim in claims for place in claim.places()]
        entries += [(BY_UUID, claim.table_uuid.bytes, claim) for claim in claims if claim.table_uuid is not None]

        def change(tx: Transaction) -> int:
            held = ((name, key, claim, tx.index(name).get(key)) for name, key, claim in entries)
            own = {
                (name, key)
                for name, key, claim, value in held
                if value is not None and ClaimOwner.from_value(value).has_taken(claim)
            }
            for name, key in own:
                tx.index(name).remove(key)
            return len(own)

        return commit_change(
            self._rows, CLAIMS, change, message=f"release the claims of {len(claims)} tables", fence=fence
        ).result

    def announce_release(self, held: Mapping[str, ClaimOwner]) -> dict[str, ClaimOwner]:
        """Name the owners of places as released, before their places are let go; returns those that still have them as was seen.

        From then on a commit that would bring one of them to a branch finds its name here, unless it read the branch before.

        raises        RefusedError for a text that is not a location
        """
        places = {location: normalise_location(location).encode() for location in held}

        def change(tx: Transaction) -> dict[str, ClaimOwner]:
            still = {location: owner for location, owner in held.items() if _has(tx, places[location], owner)}
            for owner in still.values():
                _announce(tx, self._rows, owner)
            return still

        return commit_change(self._rows, CLAIMS, change, message=f"announce the release of {len(held)} places").result

    def release_places(self, owners: Mapping[str, ClaimOwner]) -> tuple[str, ...]:
        """Let go places of announced owners that only history holds, in one commit; returns those that were still as was announced.

        raises        RefusedError for a text that is not a location
        """
        places = {location: normalise_location(location).encode() for location in owners}

        def change(tx: Transaction) -> tuple[str, ...]:
            released: list[str] = []
            for location, place in places.items():
                owner = owners[location]
                if _has(tx, place, owner) and _is_announced(tx, self._rows, owner):
                    _let_go(tx, self._rows, place, owner)
                    released.append(location)
            return tuple(released)

        return commit_change(self._rows, CLAIMS, change, message=f"release {len(places)} places").result

    def find_released(self, catalog_id: str) -> set[UUID]:
        """Find the contents of a catalog whose places were let go, and that commits which are kept may still hold."""
        return find_released(self._rows, catalog_id)

    def find_conflicts(self, claims: Sequence[TableClaim], *, over: Container[ClaimOwner] = ()) -> tuple[ClaimConflict, ...]:
        """Find the conflicts that taking these claims now would have; nothing is written. ``over`` is as for ``take_claims``, and
        nobody has to be announced.

        raises        RefusedError for a text that is not a location
        """
        places = [claim.places() for claim in claims]
        held = read_head(self._rows, CLAIMS, fresh=True)
        if held is None:
            return ()
        contested = sorted(_contested(held.index, claims, places))
        conflicts = (
            next((each for each in _conflicts(held.index, claims[at], places[at]) if not each.is_over(over)), None)
            for at in contested
        )
        return tuple(conflict for conflict in conflicts if conflict is not None)

    def claim_time(self) -> Micros:
        """The earliest time that a claim taken now gets."""
        return self._rows.clock.now()

    def check_held(self, since: Micros) -> None:
        """Raise ConflictError if claims taken at ``since`` are so old that the collector may have released them: take them again."""
        settings = self._rows.settings
        if self.claim_time() - since > min(settings.writer_grace_seconds, settings.reader_grace_seconds) * 500_000:
            raise ConflictError(
                f"claims taken at {as_text(since)} in realm {self._rows.realm!r} are too old by now: take them again"
            )

    def check_own(self, claims: Sequence[TableClaim]) -> None:
        """Raise ConflictError if a place of these claims is not their owner's any more, or about to be let go: take them again."""
        head = read_head(self._rows, CLAIMS, fresh=True)
        places = {place: claim for claim in claims for place in claim.places()}
        owners = {} if head is None else head.index(BY_LOCATION).get_many(places)
        keys = {home_key(self._rows, claim.catalog_id, claim.content_id): place for place, claim in places.items()}
        announced = {} if head is None else head.index(RELEASED).get_many(keys)
        lost = [
            place
            for place, claim in places.items()
            if place not in owners or not ClaimOwner.from_value(owners[place]).has_taken(claim)
        ] + [keys[key] for key in announced]
        if lost:
            raise ConflictError(
                f"the claim of {lost[0].decode()} in realm {self._rows.realm!r} was released since: take it again"
            )

    def find_by_uuid(self, table_uuids: Sequence[UUID]) -> dict[UUID, ClaimOwner]:
        """Find the owners of claimed uuids."""
        claims = read_head(self._rows, CLAIMS, fresh=True)
        if claims is None:
            return {}
        values = claims.index(BY_UUID).get_many(table_uuid.bytes for table_uuid in table_uuids)
        return {UUID(bytes=key): ClaimOwner.from_value(value) for key, value in values.items()}

    def find_content_id(self, catalog_id: str, table_uuid: UUID) -> UUID:
        """The content id for a table or view that a catalog is about to create or register.

        That of the claim on its uuid, where this catalog has one: earlier releases and imports gave ids by chance. Otherwise the id that
        is derived from the uuid.
        """
        return self.find_content_ids(catalog_id, [table_uuid])[table_uuid]

    def find_content_ids(self, catalog_id: str, table_uuids: Sequence[UUID]) -> dict[UUID, UUID]:
        """Find what ``find_content_id`` does, for many uuids in one look."""
        owners = self.find_by_uuid(table_uuids) if table_uuids else {}
        known = {uuid: owner.content_id for uuid, owner in owners.items() if owner.catalog_id == catalog_id}
        return {uuid: known.get(uuid) or derive_content_id(uuid) for uuid in table_uuids}

    def has_taken(self, claim: TableClaim) -> bool:
        """True if its owner has all places of a claim.

        raises        RefusedError for a text that is not a location
        """
        owners = self.find_locations([place.decode() for place in claim.places()])
        return len(owners) == len(claim.places()) and all(owner.has_taken(claim) for owner in owners.values())

    def find_holders(self, locations: Sequence[str]) -> dict[str, ClaimOwner]:
        """Find the owners of the places that contain these locations, of any length; locations in nobody's place are left out.

        raises        RefusedError for a text that is not a location
        """
        claims = read_head(self._rows, CLAIMS, fresh=True)
        enclosing = {location: places_around(location) for location in locations}
        texts = {text for around in enclosing.values() for text in around if len(text) <= KEY_BYTES}
        held = {} if claims is None else claims.index(BY_LOCATION).get_many(texts)
        values = {
            location: next((held[text] for text in around if text in held), None) for location, around in enclosing.items()
        }
        return {location: ClaimOwner.from_value(value) for location, value in values.items() if value is not None}

    def find_around_and_below(self, location: str) -> Iterator[tuple[str, ClaimOwner]]:
        """The claimed places that contain a location, outermost first, then those below it; each with its owner.

        raises        RefusedError for a text that is not a location
        """
        claims = read_head(self._rows, CLAIMS, fresh=True)
        if claims is None:
            return
        index, below = claims.index(BY_LOCATION), comparable_location(location).encode() + b"/"
        around = index.get_many(text for text in places_around(location) if len(text) <= KEY_BYTES)
        for place, value in [*sorted(around.items()), *index.range(below, below[:-1] + b"0")]:
            yield place.decode(), ClaimOwner.from_value(value)

    def find_location(self, location: str) -> ClaimOwner | None:
        """Find the owner of exactly this location."""
        return self.find_locations([location]).get(location)

    def find_locations(self, locations: Sequence[str]) -> dict[str, ClaimOwner]:
        """Find the owners of exactly these locations; unclaimed ones are left out.

        raises        RefusedError for a text that is not a location
        """
        places = {location: normalise_location(location).encode() for location in locations}
        claims = read_head(self._rows, CLAIMS, fresh=True)
        values = {} if claims is None else claims.index(BY_LOCATION).get_many(places.values())
        return {location: ClaimOwner.from_value(values[place]) for location, place in places.items() if place in values}


def _put_claim(tx: Transaction, claim: TableClaim, places: Sequence[bytes], time: Micros) -> None:
    value = ClaimOwner(claim.catalog_id, claim.content_id, time).to_value()
    for place in places:
        tx.index(BY_LOCATION).put(place, value)
    if claim.table_uuid is not None:
        tx.index(BY_UUID).put(claim.table_uuid.bytes, value)


def _has(tx: Transaction, place: bytes, owner: ClaimOwner) -> bool:
    """Whether a place is claimed exactly as was seen, not again since."""
    value = tx.index(BY_LOCATION).get(place)
    return value is not None and ClaimOwner.from_value(value) == owner


def _announce(tx: Transaction, rows: RealmReader, owner: ClaimOwner) -> None:
    """Name an owner as released, under the latest of its times: its places may have been claimed at several."""
    key = home_key(rows, owner.catalog_id, owner.content_id)
    before = tx.index(RELEASED).get(key)
    if before is None or ClaimOwner.from_value(before).taken < owner.taken:
        tx.index(RELEASED).put(key, owner.to_value())


def _is_announced(tx: Transaction, rows: RealmReader, owner: ClaimOwner) -> bool:
    return home_key(rows, owner.catalog_id, owner.content_id) in tx.index(RELEASED)


def _let_go(tx: Transaction, rows: RealmReader, place: bytes, owner: ClaimOwner) -> None:
    tx.index(BY_LOCATION).remove(place)
    _announce(tx, rows, owner)


def _released_of(tx: Transaction, rows: RealmReader, claims: Sequence[TableClaim]) -> dict[bytes, ClaimOwner]:
    """Those of the claims' owners that are named as released, by their keys."""
    values = tx.index(RELEASED).get_many(home_key(rows, claim.catalog_id, claim.content_id) for claim in claims)
    return {key: ClaimOwner.from_value(value) for key, value in values.items()}


def find_released(rows: RealmReader, catalog_id: str) -> set[UUID]:
    """See ``TableClaims.find_released``."""
    try:
        claims = read_head(rows, CLAIMS, fresh=True)
    except NotFoundError:
        return set()  # a realm that is not there yet
    entries = () if claims is None else claims.index(RELEASED).prefix(_homes_prefix(rows, catalog_id))
    return {ClaimOwner.from_value(value).content_id for _, value in entries}


def home_key(rows: RealmReader, catalog_id: str, content_id: UUID) -> bytes:
    """The key of a table in the index ``homes``."""
    return _homes_prefix(rows, catalog_id) + content_id.bytes


def _homes_prefix(rows: RealmReader, catalog_id: str) -> bytes:
    return rows.key.to_bytes(8, "big") + bytes.fromhex(catalog_id)


def _homes_of(
    tx: Transaction, rows: RealmReader, claims: Sequence[TableClaim], places: Sequence[tuple[bytes, ...]]
) -> set[TableClaim]:
    """The claims that find or make their tables at home.

    places        of each claim
    """
    keys = {claim: home_key(rows, claim.catalog_id, claim.content_id) for claim in claims}
    known = tx.index(HOMES).get_many(keys.values())
    candidates = [pair for pair in zip(claims, places, strict=True) if pair[0].is_home or keys[pair[0]] in known]
    by_place = tx.index(BY_LOCATION).get_many(place for _, wanted in candidates for place in wanted)
    by_uuid = tx.index(BY_UUID).get_many(claim.table_uuid.bytes for claim, _ in candidates if claim.table_uuid is not None)
    homes = set()
    for claim, wanted in candidates:
        values = [by_place.get(place) for place in wanted]
        values.append(None if claim.table_uuid is None else by_uuid.get(claim.table_uuid.bytes))
        held = [owner.taken for owner in map(ClaimOwner.from_value, filter(None, values)) if owner.has_taken(claim)]
        home = known.get(keys[claim])
        since = None if home is None else ClaimOwner.from_value(home).taken
        if claim.is_home if not held else since is not None and max(held) <= since:
            homes.add(claim)
    return homes


def _put_home(tx: Transaction, rows: RealmReader, claim: TableClaim, time: Micros, *, is_home: bool) -> None:
    key = home_key(rows, claim.catalog_id, claim.content_id)
    if is_home:
        tx.index(HOMES).put(key, ClaimOwner(claim.catalog_id, claim.content_id, time).to_value())
    else:
        tx.index(HOMES).remove(key)  # of an earlier claim, which an earlier release has let go


def find_homes(rows: RealmReader, catalog_id: str) -> set[UUID]:
    """Find the content ids of all tables and views that are at home in a catalog. Reads all claims of the realm, freshly."""
    claims = read_head(rows, CLAIMS, fresh=True)
    if claims is None:
        return set()
    homes = {
        owner.content_id: owner.taken
        for owner in (ClaimOwner.from_value(value) for _, value in claims.index(HOMES).prefix(_homes_prefix(rows, catalog_id)))
    }
    claimed: set[UUID] = set()
    for name in (BY_UUID, BY_LOCATION, RELEASED) if homes else ():
        for _, value in claims.index(name).range():
            owner = ClaimOwner.from_value(value)
            if owner.catalog_id == catalog_id and owner.content_id in homes:
                claimed.add(owner.content_id)
                if owner.taken > homes[owner.content_id]:
                    del homes[owner.content_id]
    return claimed & homes.keys()


def _contested(index: Callable[[str], Index], claims: Sequence[TableClaim], places: Sequence[tuple[bytes, ...]]) -> set[int]:
    """The claims that may conflict with existing ones or with each other; all others certainly do not. One bulk read for all.

    index         the existing claims' index of that name
    places        of each claim
    """
    every = [place for wanted in places for place in wanted]
    around = {place: _enclosing(place) for place in every}
    by_place = index(BY_LOCATION).get_many(text for texts in around.values() for text in texts)
    by_uuid = index(BY_UUID).get_many(claim.table_uuid.bytes for claim in claims if claim.table_uuid is not None)
    outer = {text for texts in around.values() for text in texts[:-1]}
    several = {place for place, count in Counter(every).items() if count > 1 or place in outer}
    several_uuids = {uuid for uuid, count in Counter(claim.table_uuid for claim in claims).items() if uuid and count > 1}
    occupied = _occupied(index(BY_LOCATION), every)
    contested = set()
    for at, (claim, wanted) in enumerate(zip(claims, places, strict=True)):
        texts = [text for place in wanted for text in around[place]]
        owners = [by_place[text] for text in texts if text in by_place]
        if claim.table_uuid is not None and claim.table_uuid.bytes in by_uuid:
            owners.append(by_uuid[claim.table_uuid.bytes])
        is_within_reach = not several.isdisjoint(texts) or not occupied.isdisjoint(wanted)
        is_crowded = claim.table_uuid in several_uuids or is_within_reach
        if is_crowded or not all(ClaimOwner.from_value(owner).has_taken(claim) for owner in owners):
            contested.add(at)
    return contested


def _occupied(locations: Index, places: Iterable[bytes]) -> set[bytes]:
    """The places that contain a claimed place. One look covers several places if nothing is claimed between them."""
    occupied = set()
    nearest: bytes | None = b""
    for stem in sorted({place + b"/" for place in places}):
        if nearest is not None and nearest < stem:
            nearest = next(locations.keys(stem, limit=1), None)
        if nearest is not None and nearest.startswith(stem):
            occupied.add(stem[:-1])
    return occupied


def _conflicts(index: Callable[[str], Index], claim: TableClaim, places: Sequence[bytes]) -> Iterator[ClaimConflict]:
    """The conflicts of a claim's places.

    index         the existing claims' index of that name
    """
    for place in places:
        for held, owner in _neighbours(index(BY_LOCATION), place):
            if not owner.has_taken(claim):
                yield ClaimConflict(claim, f"{_LOCATION}{place.decode()}", f"{_LOCATION}{held}", owner)
    value = None if claim.table_uuid is None else index(BY_UUID).get(claim.table_uuid.bytes)
    if value is not None and not ClaimOwner.from_value(value).has_taken(claim):
        wanted = f"table uuid {claim.table_uuid}"
        yield ClaimConflict(claim, wanted, wanted, ClaimOwner.from_value(value))


def _neighbours(locations: Index, place: bytes) -> Iterator[tuple[str, ClaimOwner]]:
    """The claimed locations that equal this one, enclose it, or lie within it."""
    for key, value in locations.get_many(_enclosing(place)).items():
        yield key.decode(), ClaimOwner.from_value(value)
    for key, value in locations.prefix(place + b"/"):
        yield key.decode(), ClaimOwner.from_value(value)


def _enclosing(place: bytes) -> list[bytes]:
    """The places that enclose this one, outermost first, and the place itself."""
    scheme, path = place.split(b"://", 1)
    first, *rest = path.split(b"/")
    return list(accumulate(rest, lambda above, name: above + b"/" + name, initial=scheme + b"://" + first))


class StoredPlaces(NamedTuple):
    """The places of stored metadata. ``location`` is None if it cannot be claimed; ``paths`` are the other claimable places."""

    location: str | None
    paths: tuple[str, ...]


def stored_places(rows: RealmReader, metadata_ids: Sequence[ObjectId]) -> dict[ObjectId, StoredPlaces]:
    """Read the places in stored documents, which may be unvalidated. All are read in one go: ask for some hundreds at a time.

    raises        as ``read_metadata`` does
    """
    return {
        metadata_id: _places_in(fields)
        for metadata_id, fields in read_fields(rows, metadata_ids, ("location", "properties")).items()
    }


def _places_in(fields: Mapping[str, bytes]) -> StoredPlaces:
    location, properties = (_decoded(fields.get(name)) for name in ("location", "properties"))
    named = (properties.get(name) for name in PATH_PROPERTIES) if isinstance(properties, dict) else ()
    return StoredPlaces(_claimable(location), tuple(path for path in map(_claimable, named) if path is not None))


def _decoded(text: bytes | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _claimable(value: object) -> str | None:
    """A location that can be claimed, or None."""
    if not isinstance(value, str):
        return None
    try:
        normalise_location(value)
    except RefusedError:
        return None
    return value
