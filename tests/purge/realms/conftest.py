"""A lake to purge, on each backend, also on one that can only do the minimum."""

from __future__ import annotations

from lake_fixtures import lake, realm, store

__all__ = ["lake", "realm", "store"]
