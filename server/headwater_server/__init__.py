"""The server: HTTP in front of the catalogs of a store.

One table of routes says what is served; the packages of the protocols fill it with handlers, which translate and hold no rules. Knows
everything in core but the command line, and neither operator nor workers. Only this package imports Starlette and uvicorn.
"""
