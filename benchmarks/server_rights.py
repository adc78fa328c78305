"""What it costs that callers prove who they are and do what they may: a decision, a load, and a listing of what may be seen."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

from benchmarks.catalog import plant_catalog
from benchmarks.http_calls import HttpConnection, request_bytes
from benchmarks.places import Place
from benchmarks.report import Row, at_least_of_floor, at_most, at_most_of_floor, say
from benchmarks.served_lakes import CATALOG, PREFIX, REALM, make_active_realm
from benchmarks.server_bench import MILLIS, ServedLake, ServerBench, repeat
from benchmarks.timing import race, timed

from headwater.access import AccessReader, Privilege, ReferenceName, RoleHolder, Securable, SecurableKind
from headwater.catalogs import CatalogDefinition, CatalogGrant, CatalogRoles, Catalogs, ContentKey
from headwater.clock import SystemClock
from headwater.realms import (
    RealmRegistry,
    assign_principal_role,
    create_principal,
    create_principal_role,
    find_principal,
    hash_credentials,
    new_credentials,
)
from headwater.store import Store, open_store
from headwater_server.identity import AccessTokens, SigningKeys
from headwater_server.realm_directory import FRESH_SECONDS

__all__ = ["measure_decisions", "measure_identity", "measure_listings"]

MICROS = 1_000_000
DECISIONS = 2000
"""Of a round."""
FEW_GRANTS, MANY_GRANTS = 10, 1000
SPACE = ContentKey(("sales",))
READS, LISTS = Privilege.TABLE_READ_PROPERTIES, Privilege.TABLE_LIST
PAGE = 1000
"""The most that the server gives at a time."""


@dataclass(frozen=True)
class GuardKeys:
    """Signing keys in a folder, and tokens of the principals of a store that servers with these keys accept."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> GuardKeys:
        folder.mkdir()
        (folder / "2026-01").write_text("a key of the benchmarks, which signs nothing else\n", encoding="utf-8")
        return cls(folder)

    def headers(self, store: Store, principal: str) -> dict[str, str]:
        """The header that shows a token, as the token endpoint gives it."""
        tokens = AccessTokens(SigningKeys(str(self.folder), SystemClock()), SystemClock(), lifetime_seconds=3600)
        realms = RealmRegistry(store)
        known, realm = find_principal(realms, REALM, principal), realms.read_realm(REALM)
        assert known is not None
        token = tokens.issue(REALM, principal, realm_key=realm.key, entity=known.entity, generation=known.generation)
        return {"Authorization": f"Bearer {token.text}"}


def make_principal(store: Store, name: str, grants: Sequence[CatalogGrant]) -> RoleHolder:
    """A principal that has some grants in the catalog, through a principal role and a catalog role of its own."""
    realms = RealmRegistry(store)
    principal = create_principal(realms, REALM, name, hash_credentials(new_credentials()))
    role = create_principal_role(realms, REALM, name)
    assign_principal_role(realms, REALM, name, name)
    rows = realms.open_realm(REALM)
    roles = CatalogRoles(rows, Catalogs(rows).read_catalog(CATALOG))
    roles.create_role(name)
    roles.assign_role(name, role.entity)
    roles.put_grants(name, grants)
    return RoleHolder(principal.entity)


def grant_on_key(key: ContentKey, privilege: Privilege = READS) -> CatalogGrant:
    return CatalogGrant(privilege=privilege, on=SecurableKind.TABLE, path=key.elements)


def grant_on_content(content_id: UUID, privilege: Privilege = READS) -> CatalogGrant:
    return CatalogGrant(privilege=privilege, on=SecurableKind.TABLE, content_id=content_id)


def measure_decisions(bench: ServerBench, place: Place) -> Iterator[Row]:
    """In process, as a request decides: the caller's rules are read, and one table is asked about. Half of the grants are on keys."""
    half = bench.scale.grants // 2
    keys, ids = [SPACE.child(f"t{number:05}") for number in range(half)], [uuid4() for _ in range(half)]
    with open_store(place.url(bench.new_name())) as store:
        make_active_realm(store)
        rows = RealmRegistry(store).open_realm(REALM)
        Catalogs(rows).create_catalog(CATALOG, base_location="s3://warehouse/")
        definition = Catalogs(rows).read_catalog(CATALOG)
        holder = make_principal(store, "reader", [*map(grant_on_key, keys), *map(grant_on_content, ids)])
        reader = AccessReader(rows, max_age_seconds=FRESH_SECONDS)
        asked = {
            "granted on its key": [(key, uuid4()) for key in keys],
            "granted on its content id": [(SPACE.child("moved"), content_id) for content_id in ids],
            "not granted": [(SPACE.child("other").child("deep").child(f"n{number}"), uuid4()) for number in range(half)],
        }
        runs = {
            case: partial(decision_seconds, reader, holder, definition, tables, is_held=case != "not granted")
            for case, tables in asked.items()
        }
        taken = race(runs, bench.scale.turns)
        cold = [
            timed(AccessReader(rows, max_age_seconds=FRESH_SECONDS).read_rules, holder, definition)
            for _ in range(bench.scale.turns)
        ]
    what = f"decisions: {bench.scale.grants:,} grants"
    for case, seconds in taken.items():
        yield Row(f"{what}, a table that is {case}", place.name, seconds * MICROS, "µs", None, at_most(100))
    yield Row(f"{what}, the first one: all are read", place.name, median(cold) * MILLIS, "ms")


def decision_seconds(
    reader: AccessReader,
    holder: RoleHolder,
    definition: CatalogDefinition,
    tables: Sequence[tuple[ContentKey, UUID]],
    *,
    is_held: bool,
) -> float:
    """The mean seconds of a decision."""
    reference = ReferenceName(definition.default_branch, is_default=True)
    chosen = random.Random(1).choices(tables, k=DECISIONS)

    def decide() -> None:
        for key, content_id in chosen:
            on = Securable(kind=SecurableKind.TABLE, catalog=definition.name, path=key.elements, content_id=content_id)
            assert reader.read_rules(holder, definition).allows(READS, on, reference) is is_held

    return timed(decide) / DECISIONS


def measure_identity(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor: a server of the same lake where nobody has to prove anything. Both write an access log; the floor no audit log."""
    scale, lake = bench.scale, bench.make_lake(place, 1)
    path, keys = lake.paths[0], GuardKeys.make(bench.folder / bench.new_name())
    audit = bench.folder / f"{bench.new_name()}.audit"
    callers: dict[str, dict[str, str]] = {"nobody": {}}
    with open_store(lake.url) as store:
        for count in (FEW_GRANTS, MANY_GRANTS):
            others = [SPACE.child(f"t{number:05}") for number in range(count - 1)]
            make_principal(store, f"reader{count}", [grant_on_key(key) for key in (*lake.keys, *others)])
            callers[f"{count:,} grants"] = keys.headers(store, f"reader{count}")
    with bench.serve(lake) as plain, bench.serve(lake, signing_keys=keys.folder, audit_file=audit) as guarded:
        assert guarded.call("GET", path).status == 401, "who proves nothing gets nothing"
        tag = plain.call("GET", path).header("etag")
        ports = {who: plain.port if who == "nobody" else guarded.port for who in callers}
        storms = bench.by_turns(
            {
                (who, status): partial(
                    bench.run,
                    repeat,
                    ports[who],
                    request_bytes("GET", path, headers={**shown, **({"If-None-Match": tag} if status == 304 else {})}),
                    status,
                    scale.clients,
                    scale.seconds,
                )
                for status in (200, 304)
                for who, shown in callers.items()
            }
        )
    assert not any(each.failures for each in storms.values()), storms
    told = audit.read_bytes().count(b"\n")
    assert told >= sum(storm.done for (who, _), storm in storms.items() if who != "nobody"), "each request has its line"
    for (who, status), storm in storms.items():
        if who != "nobody":
            floor, what = storms["nobody", status], "a cached load" if status == 200 else "304"
            case = f"identity: {what}, a caller with {who}"
            yield Row(case, place.name, storm.rate, "loads/s", floor.rate, at_least_of_floor(0.75))
            waits = [each.percentile(0.99) * MILLIS for each in (storm, floor)]
            yield Row(f"{case}: wait, p99", place.name, waits[0], "ms", waits[1])


def measure_listings(bench: ServerBench, place: Place) -> Iterator[Row]:
    """The floor: all tables of the namespace, from a server where nobody has to prove anything. One client reads all pages."""
    count = bench.scale.listed
    tables = [SPACE.child(f"t{number:05}") for number in range(count)]
    keys, url = GuardKeys.make(bench.folder / bench.new_name()), place.url(bench.new_name())
    audit = bench.folder / f"{bench.new_name()}.audit"
    with open_store(url) as store:
        make_active_realm(store)
        say(f"{place.name}: a namespace of {count:,} tables")
        catalog = plant_catalog(RealmRegistry(store).open_realm(REALM), tables)
        seen = [entry for entry in catalog.entries(prefix=SPACE).entries if len(entry.key.elements) > 1][::2]
        make_principal(store, "keys", [grant_on_key(entry.key, LISTS) for entry in seen])
        make_principal(store, "contents", [grant_on_content(entry.content_id, LISTS) for entry in seen])
        shown = {name: keys.headers(store, name) for name in ("keys", "contents")}
    lake = ServedLake(url, bench.folder, tables)
    with ExitStack() as stack:
        plain = stack.enter_context(bench.serve(lake, is_loaded=False))
        guarded = stack.enter_context(bench.serve(lake, is_loaded=False, signing_keys=keys.folder, audit_file=audit))
        lines = [stack.enter_context(closing(HttpConnection(server.port))) for server in (plain, guarded)]
        contenders = {"nobody": partial(listing_seconds, lines[0], {}, count)}
        contenders |= {name: partial(listing_seconds, lines[1], headers, len(seen)) for name, headers in shown.items()}
        taken = race(contenders, 2 * bench.scale.turns + 1)
    for name, how in (("keys", "by grants on their keys"), ("contents", "by grants on their content ids")):
        case = f"listings: {count:,} tables, of which half may be seen, {how}"
        yield Row(case, place.name, taken[name] * MILLIS, "ms", taken["nobody"] * MILLIS, at_most_of_floor(2))


def listing_seconds(line: HttpConnection, headers: dict[str, str], expected: int) -> float:
    """How long all pages of the namespace take."""
    return timed(_read_pages, line, headers, expected)


def _read_pages(line: HttpConnection, headers: dict[str, str], expected: int) -> None:
    listed, token = 0, ""
    while True:
        path = f"/iceberg/v1/{PREFIX}/namespaces/{SPACE.name}/tables?pageSize={PAGE}&pageToken={token}"
        reply = line.call(request_bytes("GET", path, headers=headers))
        assert reply.status == 200, reply.body[:300]
        page = json.loads(reply.body)
        listed += len(page["identifiers"])
        token = page.get("next-page-token") or ""
        if not token:
            assert listed == expected, (listed, expected)
            return
