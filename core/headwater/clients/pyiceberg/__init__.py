"""A branch of a catalog as a catalog of pyiceberg: ``py-catalog-impl: headwater.clients.pyiceberg.HeadwaterCatalog``.

Only this package may import pyiceberg. It must not know workers, realms' states, Spark or Kubernetes.
"""

from headwater.clients.pyiceberg.pyiceberg_catalog import HeadwaterCatalog

__all__ = ["HeadwaterCatalog"]
