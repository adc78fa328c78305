"""Keys of requests that tests repeat."""

from __future__ import annotations

from uuid import UUID

from headwater.catalogs import RequestKey

__all__ = ["make_request"]

_VERSION, _VARIANT = 7 << 76, 2 << 62


def make_request(number: int = 1, *, at: int = 0, scope: bytes = b"ada", digest: bytes = b"put") -> RequestKey:
    """The key with this number of a client whose clock said ``at``, in microseconds since 1970."""
    return RequestKey(UUID(int=at // 1000 << 80 | _VERSION | _VARIANT | number), scope, digest)
