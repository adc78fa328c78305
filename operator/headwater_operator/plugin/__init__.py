"""`kubectl headwater`: commands for realms and catalogs in a cluster, through the Kubernetes API alone.

It reads resources, and writes nothing but what a person could write with kubectl: annotations, a policy, a deletion, a finalizer that
no operator is left to remove. It must not know the store, holds no rule of the planners, and imports nothing that takes long to load.
"""

from headwater_operator.plugin.kubectl_cli import main

__all__ = ["main"]
