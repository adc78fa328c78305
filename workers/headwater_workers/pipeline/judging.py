"""Tables that contradict each other, found in a data frame."""

from __future__ import annotations

from typing import Any

from headwater.catalogs.iceberg.judging import judge
from headwater.catalogs.iceberg.outcomes import Quarantined, Sketch

__all__ = ["verdicts_on"]


def verdicts_on(outcomes: Any) -> dict[str, Quarantined]:
    """OUTCOMES -> the verdicts, by directory, on those that cannot stand beside each other.

    One shuffle finds them, and only they come to this process; as a rule there are few.
    """
    from pyspark.sql.functions import col, count_if, explode, lit

    traits = outcomes.select("directory", "key", "uuid", explode("traits").alias("trait")).select("*", "trait.*").persist()
    contested = traits.groupBy("name").agg(count_if("alone").alias("owners"), count_if(lit(True)).alias("tables"))
    contested = contested.where((col("owners") > 0) & (col("tables") > 1))
    involved = traits.join(contested, "name", "left_semi").select("directory", "key", "uuid").distinct()
    rows = involved.toLocalIterator()
    return judge(Sketch(row.directory, tuple(row.key), row.uuid) for row in rows)
