"""What Prometheus reads: the operator's own metrics, figures of the store, and a bounded number of labels for realms and catalogs."""
