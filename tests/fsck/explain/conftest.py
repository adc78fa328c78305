"""A lake with some history, on each backend, also on one that can only do the minimum."""

from __future__ import annotations

from lake_fixtures import lake, old_commits, realm, realm_rows, store

__all__ = ["lake", "old_commits", "realm", "realm_rows", "store"]
