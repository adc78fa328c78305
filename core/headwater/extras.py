"""Names the extra of the distribution that provides a library which is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from headwater.errors import RefusedError

__all__ = ["missing_extra"]

_EXTRAS = {
    "aiohttp": "operator",
    "billiard": "workers",
    "botocore": "lake",
    "bson": "mongodb",
    "celery": "workers",
    "fastavro": "lake",
    "h11": "server",
    "joserfc": "server",
    "kombu": "workers",
    "kopf": "operator",
    "kubernetes": "operator",
    "prometheus_client": "operator",
    "psycopg": "postgresql",
    "py4j": "spark",
    "pyarrow": "lake",
    "pyiceberg": "pyiceberg",
    "pymongo": "mongodb",
    "pyspark": "spark",
    "redis": "workers",
    "starlette": "server",
    "urllib3": "operator",
    "uvicorn": "server",
}
"""By the module that is imported; ``urllib3`` comes with ``kubernetes``."""


def missing_extra(absent: ModuleNotFoundError) -> RefusedError | None:
    """The error for a missing library of an extra; None for any other module, whose absence is a bug."""
    package = (absent.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    if find_spec(package) is not None:  # it is there, and the module that is asked for is not: another release of it
        return RefusedError(
            f"the installed Python package {package!r} does not fit, for it has no module {absent.name!r}:"
            f" pip install -U 'headwater[{extra}]'"
        )
    return RefusedError(f"this needs the Python package {package!r}, which is not installed: pip install 'headwater[{extra}]'")
