"""A branch of a catalog as a catalog of pyiceberg: ``py-catalog-impl: headwater.clients.pyiceberg.HeadwaterCatalog``.

The only room that may import pyiceberg. Must not know who does tasks, realms' states, Spark or Kubernetes.
"""

from headwater.clients.pyiceberg.pyiceberg_catalog import HeadwaterCatalog

__all__ = ["HeadwaterCatalog"]
