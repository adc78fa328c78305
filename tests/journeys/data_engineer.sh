# The first ten minutes of a data engineer: my tables lie in a folder, and I want branches over them.
# A store, a realm and a catalog. The realm's first credentials go into a file; nothing here asks for them.
export HEADWATER_STORE=sqlite:///headwater.db
headwater store create
headwater realm create acme --credentials acme.json
headwater catalog create acme/lake --base-location "file://$PWD/lake" --allowed-location "file://$PWD/warehouse"

# From here on, what is left out is acme/lake.
headwater context set here acme/lake --store sqlite:///headwater.db
unset HEADWATER_STORE

# What would be imported, and then the import. No file of the tables is touched.
headwater import /lake warehouse --dry-run
headwater import /lake warehouse
headwater catalog tables | grep sales.orders
headwater catalog content /lake sales.orders

# A branch is made at once, whatever the tables' size. A change on it is seen by nobody else.
headwater catalog branch create /lake dev
python - <<'PYTHON'
import headwater

with headwater.connect("sqlite:///headwater.db") as store:
    dev = store.realm("acme").catalog("lake").branch("dev").pyiceberg()
    orders = dev.load_table("sales.orders")
    orders.append(orders.scan().to_arrow())
PYTHON
headwater catalog diff /lake main dev
headwater catalog merge @main dev --dry-run
headwater catalog merge @main dev --message "twice as many orders"
headwater catalog log | grep "twice as many orders"
headwater catalog history /lake sales.orders
headwater snapshots list /lake sales.orders

# A mistake, and the way back: what is deleted stays readable for the grace.
headwater catalog branch delete /lake dev
headwater catalog branch undelete /lake dev

# What engines paste to read the same table through a server.
headwater client-config spark acme/lake | grep spark.sql.catalog
