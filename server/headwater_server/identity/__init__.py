"""Who calls the server: tokens are judged, and become the name of a principal of one realm.

Nothing here must know what a principal may do, nor how HTTP carries a token. A token is judged for the realm that the request names,
and for no other. Only this package imports joserfc.
"""

from headwater_server.identity.identity_errors import NotProvenError
from headwater_server.identity.issuer_tokens import IssuerIdentity, IssuerTokens

__all__ = ["IssuerIdentity", "IssuerTokens", "NotProvenError"]
