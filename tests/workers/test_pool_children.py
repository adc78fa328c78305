"""Children of a worker's pool."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from headwater.settings import Settings
from headwater_workers.worker import _Children


def test_child_makes_no_store_where_its_own_has_vanished(tmp_path: Path) -> None:
    children = _Children(Settings(store=f"sqlite:///{tmp_path}/store.db"))

    with capture_logs() as said:
        children.look("0123456789abcdef", None)

    assert "there is no store in" in said[0]["error"]
    assert list(tmp_path.iterdir()) == []
