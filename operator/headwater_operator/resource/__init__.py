"""One resource: its pass through the store, its conditions, status, events, finalizer and Secret.

``reconciler`` is the entrance; each other module is one aspect of a Realm or a Catalog. Modules are cut by aspect and not by
resource, because more than half of the conditions and of the status, and all of the events, are the same for both: by resource
each aspect would need three files, and a Realm would go through two of them. Must not know how resources are watched.
"""
