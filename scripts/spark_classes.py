"""Archive the classes that a JVM with Spark loads: ``spark_classes.py FOLDER`` writes the archive there, and the options that use it.

Loading and verifying ten thousand classes is half of what a short job takes, and tests start dozens of JVMs. Java calls this
application class-data sharing. A JVM of another build, or with other jars, finds that the archive does not fit and does without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headwater_workers.pipeline.spark_session import SparkOptions

JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
"""What this variable says is among the options of a JVM that Spark starts for a driver."""
PATIENCE_SECONDS = 300
"""The archive is written when the JVM ends."""


def main(folder: Path) -> None:
    archive, unfinished = folder / "archive.jsa", folder / "unfinished.jsa"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {JAVA_OPTIONS: f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:disable", "PYSPARK_PYTHON": sys.executable}
    with TemporaryDirectory() as place:
        conf = SparkOptions("local[2]", {"spark.sql.warehouse.dir": place}).complete()
        spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
        work(spark, f"{place}/rows")
        spark.stop()
    jvm: Any = SparkContext._gateway.proc  # type: ignore[union-attr]
    jvm.stdin.close()
    jvm.wait(PATIENCE_SECONDS)
    unfinished.replace(archive)
    (folder / "options").write_text(f"-XX:SharedArchiveFile={archive} -Xlog:disable\n", encoding="utf-8")


def work(spark: Any, place: str) -> None:
    """A little of what jobs do: rows of Python, a grouping, a join, files, a function of Python."""
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "b")], "id long, name string")
    rows.groupBy("name").count().join(rows, "name").orderBy("id").write.parquet(place)
    read = spark.read.parquet(place).where("count > 1")
    assert read.rdd.map(lambda row: row.id).sum() == 5
    assert spark.sql("select max(id) from values (1), (2) as numbers(id)").collect()[0][0] == 2


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
