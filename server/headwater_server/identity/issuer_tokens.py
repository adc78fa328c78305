"""A placeholder until the branch with the real one is merged."""

from dataclasses import dataclass

from headwater.clock import Clock


@dataclass(frozen=True, slots=True)
class IssuerIdentity:
    issuer: str
    principal: str
    roles: frozenset[str]
    uses_stored: bool
    expires_at: int


class IssuerTokens:
    def __init__(self, path: str, clock: Clock) -> None:
        raise NotImplementedError

    def verify(self, token: str, realm: str) -> IssuerIdentity:
        raise NotImplementedError
