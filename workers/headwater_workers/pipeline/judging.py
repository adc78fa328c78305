"""Tables that contradict each other, found in a data frame."""

from __future__ import annotations

from typing import Any

from headwater.catalogs.iceberg.judging import judge
from headwater.catalogs.iceberg.outcomes import Quarantined, Sketch

__all__ = ["traits_in", "verdicts_on"]


def traits_in(outcomes: Any) -> Any:
    """OUTCOMES -> TRAITS."""
    from pyspark.sql.functions import explode

    return outcomes.select("directory", "key", "uuid", explode("traits").alias("trait")).select(
        "directory", "key", "uuid", "trait.*"
    )


def verdicts_on(traits: Any) -> dict[str, Quarantined]:
    """TRAITS -> the verdicts, by directory, on tables that cannot stand beside each other.

    One shuffle finds them, and only they come to this process; as a rule there are few.
    """
    from pyspark.sql.functions import col, count_if, lit

    contested = traits.groupBy("name").agg(count_if("alone").alias("owners"), count_if(lit(True)).alias("tables"))
    contested = contested.where((col("owners") > 0) & (col("tables") > 1))
    involved = traits.join(contested, "name", "left_semi").select("directory", "key", "uuid").distinct()
    return judge(Sketch(row.directory, tuple(row.key), row.uuid) for row in involved.collect())
