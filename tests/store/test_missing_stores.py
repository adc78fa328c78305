"""A store that is not there is not made by opening it, unless it is asked for."""

from __future__ import annotations

import pytest

from headwater.errors import NotFoundError
from headwater.store import open_store


def test_missing_store_is_created_only_when_asked(store_url: str) -> None:
    if store_url.startswith("memory:"):
        pytest.skip("a store in memory begins when it is opened: there is none that could be missing")
    for _ in range(2):  # the first time would have set it up
        with pytest.raises(NotFoundError, match="there is no store"):
            open_store(store_url, create=False)
    open_store(store_url).close()

    open_store(store_url, create=False).close()
