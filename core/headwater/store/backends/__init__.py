"""One module per database. Each knows its driver and nothing of types, commits or realms' meaning."""
