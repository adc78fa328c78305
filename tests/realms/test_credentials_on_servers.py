"""Root's credentials on the databases that are servers."""

from __future__ import annotations

import pytest

from backend_fixtures import STORES
from headwater.errors import RefusedError
from headwater.realms import (
    Credentials,
    CredentialsHash,
    RealmRegistry,
    bootstrap,
    hash_credentials,
    log_in,
    new_credentials,
    reset_principal,
    rotate_principal,
)


@pytest.fixture(params=["postgresql", "mongodb"])
def store_url(request: pytest.FixtureRequest) -> str:
    return STORES[request.param](request)


def test_rotation_keeps_the_former_credentials_and_a_reset_refuses_them(
    realms: RealmRegistry, credentials: Credentials, credentials_hash: CredentialsHash
) -> None:
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)
    others = new_credentials()
    rotate_principal(realms, "acme", "root", hash_credentials(others))
    assert [log_in(realms, "acme", one).name for one in (credentials, others)] == ["root", "root"]

    reset_principal(realms, "acme", "root", hash_credentials(others))

    with pytest.raises(RefusedError, match="refuses client"):
        log_in(realms, "acme", credentials)
