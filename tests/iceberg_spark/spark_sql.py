"""Statements for Spark, in a session with catalogs of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError

Row = tuple[Any, ...]
OPTIONS = {"": "org.apache.iceberg.spark.SparkCatalog", "cache-enabled": "false"}
"""Without the cache, because for half a minute it would hide what others commit."""


class SparkFault(Exception):
    """What Spark threw: the names of the exception's class and of its causes' classes, and what they say to a user."""

    def __init__(self, kinds: list[str], text: str) -> None:
        super().__init__(f"{' < '.join(kinds)}: {text}")
        self.kinds = kinds
        self.text = text


class SparkSql:
    """A session of Spark. Called with a statement it returns the rows. Thread-safe, and statements of threads run side by side."""

    def __init__(self, spark: Any) -> None:
        self._session = spark.newSession()

    def __call__(self, statement: str) -> list[Row]:
        """Run a statement; raises SparkFault."""
        try:
            rows = self._session.sql(statement).collectAsList()
        except Py4JJavaError as error:
            raise fault_of(error) from None
        # by number: once pyspark was in this process, it takes the end of an iteration for a fault of its own session
        return [tuple(json.loads(rows.get(at).json()).values()) for at in range(rows.size())]

    def set_option(self, name: str, value: str) -> None:
        self._session.conf().set(name, value)

    def add_catalog(self, name: str, url: str, warehouse: str) -> None:
        """Let statements name a catalog that a server serves."""
        self.set_catalog(name, {"type": "rest", "uri": f"{url}/iceberg", "warehouse": warehouse})

    def set_catalog(self, name: str, options: Mapping[str, str]) -> None:
        """Let statements name a catalog of these options."""
        for option, value in {**OPTIONS, **options}.items():
            self.set_option(".".join(filter(None, ("spark.sql.catalog", name, option))), value)

    def beside(self) -> SparkSql:
        """Another session of the same Spark, which knows no catalog yet."""
        return SparkSql(self._session)

    def java_class(self, name: str) -> Any:
        """A class in the JVM, for its static methods."""
        return JavaClass(name, self._session._gateway_client)

    def iceberg_catalog(self, name: str) -> Any:
        """The catalog of Iceberg's library behind one of Spark's."""
        return self._session.sessionState().catalogManager().catalog(name).icebergCatalog()


def fault_of(error: Py4JJavaError) -> SparkFault:
    """What a call into the JVM threw."""
    thrown: Any = error.java_exception
    kinds, texts = [], []
    while thrown is not None and len(kinds) < 20:
        kinds.append(thrown.getClass().getSimpleName())
        texts.append(thrown.getMessage() or "")
        thrown = thrown.getCause()
    return SparkFault(kinds, "\n".join(texts))
