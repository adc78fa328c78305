"""Who calls: tokens of the server's own, tokens of OpenID Connect issuers, and the credentials that the first are given for.

This package proves who somebody is. It knows nothing of what anybody may do, nor of any protocol that is served.
"""

from headwater_server.identity.access_tokens import AccessTokens, TokenClaims
from headwater_server.identity.caller_proof import CallerProof, ProvenSignIn, bearer_token
from headwater_server.identity.hash_slots import HashSlots
from headwater_server.identity.issuer_tokens import IssuerIdentity, IssuerTokens
from headwater_server.identity.page_seals import PageSeal, PageSeals
from headwater_server.identity.signing_keys import SigningKeys

__all__ = [
    "AccessTokens",
    "CallerProof",
    "HashSlots",
    "IssuerIdentity",
    "IssuerTokens",
    "PageSeal",
    "PageSeals",
    "ProvenSignIn",
    "SigningKeys",
    "TokenClaims",
    "bearer_token",
]
