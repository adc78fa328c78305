"""Each backend, also one that can only do the minimum; and a realm that keeps one commit of content of a lake with some history."""

from __future__ import annotations

from lake_fixtures import lake, old_commits, realm, realm_rows, store

__all__ = ["lake", "old_commits", "realm", "realm_rows", "store"]
