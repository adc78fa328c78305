"""Credentials that are kept: when they are made anew, for whom, and what becomes of failures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from fake_clock import FakeClock
from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.iceberg import ClientKey, ClientRole, StorageOptions
from headwater_server.storage_credentials import CredentialVendor, IssuedCredentials, RoleRefusedError, StorageGrant

ROLE = ClientRole(arn="arn:aws:iam::123456789012:role/lake", lifetime_seconds=3600)
OPTIONS = StorageOptions(location="s3://lake", client_role=ROLE)
GRANT = StorageGrant(("s3://lake/a/t",), may_write=False, who="ann@acme", of="1")


@dataclass
class NumberedIssuer:
    """Makes credentials that are told apart by a number, and fails where it is told to.

    life          of its credentials, in seconds
    """

    clock: FakeClock
    life: float = 3600
    fault: HeadwaterError | None = None
    calls: int = 0
    asked: list[StorageGrant] = field(default_factory=list)
    hold: Callable[[], None] = lambda: None

    def issue(self, options: StorageOptions, grant: StorageGrant) -> IssuedCredentials:
        self.calls += 1
        self.asked.append(grant)
        self.hold()
        if self.fault is not None:
            raise self.fault
        return IssuedCredentials({"s3.access-key-id": str(self.calls)}, round(self.clock.wall() / 1000 + self.life * 1000))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer(clock: FakeClock) -> NumberedIssuer:
    return NumberedIssuer(clock)


@pytest.fixture
def vendor(clock: FakeClock, issuer: NumberedIssuer) -> CredentialVendor:
    return CredentialVendor(clock, {"s3": issuer}, limit=10)


def number(vendor: CredentialVendor, grant: StorageGrant = GRANT, options: StorageOptions = OPTIONS) -> int:
    credentials = vendor.vend(options, grant)
    assert credentials is not None
    return int(credentials.config["s3.access-key-id"])


def test_storage_without_a_role_has_no_credentials(vendor: CredentialVendor) -> None:
    own = StorageOptions(location="s3://lake", access_key_id="AKIA", secret_access_key="own", role_arn=ROLE.arn)

    assert vendor.vend(own, GRANT) is None


def test_key_for_clients_is_handed_on(vendor: CredentialVendor) -> None:
    key = ClientKey(access_key_id="AKIACLIENTS", secret_access_key="theirs")
    options = StorageOptions(location="s3://lake", access_key_id="AKIA", secret_access_key="own", client_key=key)
    given = vendor.vend(options, GRANT)

    assert given is not None and given.expires_ms is None
    assert given.config == {"s3.access-key-id": "AKIACLIENTS", "s3.secret-access-key": "theirs"}
    assert "theirs" not in repr(given)


def test_credentials_are_made_once(vendor: CredentialVendor, clock: FakeClock) -> None:
    first = number(vendor)
    clock.advance(1799)

    assert (first, number(vendor)) == (1, 1)


def test_half_of_their_life_is_always_left(vendor: CredentialVendor, clock: FakeClock) -> None:
    number(vendor)
    clock.advance(1800)

    assert number(vendor) == 2


def test_service_that_gives_a_shorter_life_is_believed(
    vendor: CredentialVendor, issuer: NumberedIssuer, clock: FakeClock
) -> None:
    issuer.life = 10
    number(vendor)
    clock.advance(5)

    assert number(vendor) == 2


@pytest.mark.parametrize(
    "other",
    [
        replace(GRANT, may_write=True),
        replace(GRANT, who="bob@acme"),
        replace(GRANT, of="2"),
        replace(GRANT, places=("s3://lake/a/t2",)),
    ],
)
def test_other_grant_has_credentials_of_its_own(vendor: CredentialVendor, other: StorageGrant) -> None:
    assert (number(vendor), number(vendor, other), number(vendor)) == (1, 2, 1)


def test_other_options_have_credentials_of_their_own(vendor: CredentialVendor) -> None:
    changed = StorageOptions(location="s3://lake", client_role=ROLE, secret_access_key="new", access_key_id="AKIA")

    assert (number(vendor), number(vendor, options=changed)) == (1, 2)


def test_few_credentials_are_kept(vendor: CredentialVendor) -> None:
    for at in range(12):
        number(vendor, replace(GRANT, of=str(at)))

    assert number(vendor, replace(GRANT, of="11")) == 12
    assert number(vendor, replace(GRANT, of="0")) == 13


def test_threads_share_one_call(vendor: CredentialVendor, issuer: NumberedIssuer) -> None:
    meeting = threading.Barrier(8)

    def ask() -> int:
        meeting.wait()
        return number(vendor)

    with ThreadPoolExecutor(8) as pool:
        numbers = {future.result() for future in [pool.submit(ask) for _ in range(8)]}

    assert (numbers, issuer.calls) == ({1}, 1)


def test_check_is_made_before_credentials_are(vendor: CredentialVendor, issuer: NumberedIssuer) -> None:
    def refuse() -> None:
        raise RefusedError("another table is there")

    with pytest.raises(RefusedError, match="another table"):
        vendor.vend(OPTIONS, GRANT, check=refuse)
    assert issuer.calls == 0


def test_service_that_is_down_is_left_alone_for_a_while(
    vendor: CredentialVendor, issuer: NumberedIssuer, clock: FakeClock
) -> None:
    issuer.fault = UnavailableError("down")
    for of in ("1", "2", "3"):
        with pytest.raises(UnavailableError, match="down"):
            number(vendor, replace(GRANT, of=of))
    asked_first = issuer.calls
    issuer.fault = None
    clock.advance(5)

    assert (asked_first, number(vendor)) == (1, 2)


@pytest.mark.parametrize("kind", [RefusedError, RoleRefusedError])
def test_refused_grant_hinders_no_other(vendor: CredentialVendor, issuer: NumberedIssuer, kind: type[HeadwaterError]) -> None:
    issuer.fault = kind("too long")
    for _ in range(2):
        with pytest.raises(kind, match="too long"):
            number(vendor)
    issuer.fault = None

    assert number(vendor, replace(GRANT, of="2")) == 2


def test_credentials_are_given_on_while_the_service_is_down(
    vendor: CredentialVendor, issuer: NumberedIssuer, clock: FakeClock
) -> None:
    number(vendor)
    issuer.fault = UnavailableError("down")
    clock.advance(3500)
    given_on = number(vendor)
    clock.advance(50)

    assert given_on == 1
    with pytest.raises(UnavailableError):
        number(vendor)
