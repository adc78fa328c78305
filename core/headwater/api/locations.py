"""Locations as people write them."""

from __future__ import annotations

from pathlib import Path


def folder_location(location: str) -> str:
    """A URL as it is; a folder as the location of its absolute path, in which nothing is percent-encoded. What ``..`` means depends on
    links; without one, a folder behind a link keeps the name that its tables record."""
    if "://" in location:
        return location
    path = Path(location)
    return f"file://{path.resolve() if '..' in path.parts else path.absolute()}"
