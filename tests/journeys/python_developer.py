# The first ten minutes of a Python developer: one object, from which everything else is reached.
from pathlib import Path

import pyarrow as pa

import headwater

# A store in a file, a realm in it, and a catalog whose tables lie in a folder.
with headwater.connect("sqlite:///headwater.db", create=True, author="ada") as store:
    acme = store.create_realm("acme", credentials="acme.json")
    lake = acme.create_catalog("lake", base_location=Path("lake").absolute().as_uri())

    # pyiceberg writes to a branch; other branches do not change.
    main = lake.branch()
    catalog = main.pyiceberg()
    catalog.create_namespace("sales")
    columns = pa.schema([("id", pa.int64()), ("total", pa.float64())])
    catalog.create_table("sales.orders", columns).append(pa.table({"id": [1, 2], "total": [9.5, 20.0]}))

    dev = lake.create_branch("dev")
    dev.pyiceberg().load_table("sales.orders").append(pa.table({"id": [3], "total": [5.0]}))
    print("rows on main:", main.pyiceberg().load_table("sales.orders").scan().to_arrow().num_rows)
    for difference in main.diff("dev"):
        print(difference.action, difference.key)

    # A merge is one commit, with a message and an author.
    merged = main.merge("dev", message="one order more")
    print("merged:", merged.commits)
    for commit in main.log(limit=3):
        print(commit.hash, commit.authors, commit.message)

    # What goes wrong says what to do.
    try:
        acme.purge(confirm="acme")
    except headwater.RefusedError as refused:
        print(refused)

    # Maintenance is a call, and so is a backup.
    print("kept:", acme.collect(dry_run=True)["kept"])
    print("archive:", acme.export("acme.realm")["file"])
    assert store.check() == []
