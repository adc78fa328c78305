"""Prometheus metrics: the operator's own, figures of the store, and a bounded number of labels for realms and catalogs."""
