"""Removes logins that people write into URLs and locations before these are shown. In doubt it removes too much."""

from __future__ import annotations

import re

MASK = "***"
URL_LOGIN = re.compile(r"([a-z][a-z0-9+.\-]*://)([^\s\"'<>]*)@", re.IGNORECASE)
"""Up to the last @, also behind a slash: a password may hold both, and a path with an @ is rare."""


def without_logins(text: str) -> str:
    """A text whose URLs have stars where a user and a password would stand."""
    return URL_LOGIN.sub(rf"\1{MASK}@", text)
