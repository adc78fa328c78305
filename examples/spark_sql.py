"""Ask a store in SQL, with Spark: ``python examples/spark_sql.py [--store URL] [--realm REALM] [QUERY]``.

Makes a view of each table and runs a query on them; without one, it tells who changed what last. The page docs/how-to/spark.md has more.
"""

from __future__ import annotations

import argparse
import os
import sys

from pyspark.sql import SparkSession

import headwater

LAST_CHANGES = """
SELECT time, ref, key, action, authors, message
FROM changes
WHERE time > now() - INTERVAL 7 DAYS
ORDER BY time DESC
LIMIT 20
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask a store in SQL.")
    parser.add_argument("--store", help="its URL; default: HEADWATER_STORE")
    parser.add_argument("--realm", help="one realm only")
    parser.add_argument("query", nargs="?", default=LAST_CHANGES, help="what to ask")
    asked = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the python3 of the PATH may be one without Headwater
    spark = SparkSession.builder.appName("headwater in SQL").config("spark.ui.enabled", "false").getOrCreate()
    try:
        with headwater.connect(asked.store) as store:
            store.make_spark_views(spark, realm=asked.realm)
        spark.sql(asked.query).show(100, truncate=False)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
