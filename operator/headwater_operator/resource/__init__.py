"""One resource: its pass through the store, its conditions, status, events, finalizer and Secret.

``reconciler`` is the entrance; each other module is one aspect of a Realm or a Catalog. Must not know how resources are watched.
"""
