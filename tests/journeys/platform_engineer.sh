# The first ten minutes of a platform engineer without Kubernetes: manifests in a folder, one process that keeps to them.
export HEADWATER_STORE=sqlite:///headwater.db
headwater init manifests
cat manifests/*.yaml

# What would be done, and then it is done, as far as it is due now.
headwater up manifests --once
headwater realm list
headwater catalog list acme
headwater diff -f manifests

# A change of a manifest: seen before it is applied, and applied.
sed -i 's/^  properties:.*//; s/^spec:/spec:\n  deletionProtection: true/' manifests/*.yaml
headwater diff -f manifests || [ $? = 9 ]
headwater apply -f manifests --dry-run
headwater apply -f manifests
headwater realm show acme -o json | grep '"deletionProtection": true'

# Maintenance: what it would do, what it did, and why something is kept.
headwater gc run acme --dry-run
headwater gc run acme
headwater runs list
headwater task list
headwater fsck

# A backup, and what it is worth: the same realm, in another store.
headwater realm export acme acme.realm
headwater --store sqlite:///other.db realm import acme.realm acme
headwater --store sqlite:///other.db catalog list acme

# Who may do what, for a server that asks.
headwater principal create acme etl --credentials etl.json
headwater role create acme writers --to etl
headwater role create acme/lake loader --to writers
headwater grant add acme/lake loader CATALOG_MANAGE_CONTENT
headwater access explain acme/lake etl TABLE_CREATE | grep -i allowed
