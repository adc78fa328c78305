"""One package or module per database. Each knows its driver, and nothing of object types, commits or the meaning of realms."""
