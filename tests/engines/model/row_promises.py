"""What a database makes of each row, whoever else changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engines.model.linearizability import Model, Operation, find_anomaly
from engines.model.promise import promised


@promised("docs/operate/stores.md", "What every store promises")
def rows_change_at_one_instant(histories: Mapping[str, Iterable[Operation]], row: Model) -> list[str]:
    """All operations on a row can be told one after the other, each between its call and its answer.

    histories     the operations on each row, by its name
    row           what an operation makes of a row alone
    """
    found = ((name, find_anomaly(history, row)) for name, history in histories.items())
    return [f"{name} is {anomaly}" for name, anomaly in found if anomaly is not None]
