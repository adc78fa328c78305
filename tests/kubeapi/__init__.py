"""A small server that behaves like the API server of Kubernetes, for tests: run it as a process with ``python -m kubeapi --port 0``.

It keeps objects in memory, serves what a CustomResourceDefinition asks for, and can be told to fail. It knows nothing of Headwater.
Beside the API a test has:

    GET, DELETE /_control/requests    what was asked, oldest first: ?since=NUMBER&verb=&resource=&namespace=&user_agent=START&path=START
    GET         /_control/shapes      each shape of request of each program, with an example: see kubeapi.shapes
    GET         /_control/counts      requests, and those that changed something, by verb and resource; how many watches are open
    POST, GET, DELETE /_control/faults    failures to come: a list of kubeapi.control.Fault as plain values
    POST        /_control/watches/cut     close all watches, or with ?resource=realms.headwater.dev those of one resource
    POST        /_control/compact         forget all changes: older versions are gone
"""

__all__: list[str] = []
