"""A small server that behaves like the API server of Kubernetes, for tests: run it as a process with ``python -m kubeapi --port 0``.

It keeps objects in memory, serves what a CustomResourceDefinition asks for, and can be told to fail. It knows nothing of Headwater.
"""

__all__: list[str] = []
