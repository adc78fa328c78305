"""Headwater keeps the catalogs of a data lakehouse in any database that can compare-and-swap one row, and maintains them."""

from headwater.settings import Settings
from headwater.store import Store, open_store

__all__ = ["Settings", "Store", "open_store"]
