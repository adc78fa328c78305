// What a user of iceberg-go does in a namespace, step by step: each prints whether it was done, or what it met.
package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "word", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func step(name string, err error) bool {
	if err != nil {
		fmt.Printf("FAIL %s: %q\n", name, err.Error())
		return false
	}
	fmt.Println("ok  ", name)
	return true
}

func rows(ids ...int64) arrow.Table {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	for _, id := range ids {
		builder.Field(0).(*array.Int64Builder).Append(id)
		builder.Field(1).(*array.StringBuilder).Append("go é")
	}
	return array.NewTableFromRecords(columns, []arrow.RecordBatch{builder.NewRecordBatch()})
}

func count(ctx context.Context, t *table.Table) {
	read, err := t.Scan().ToArrowTable(ctx)
	if step("count", err) {
		fmt.Println("ok   rows", read.NumRows())
	}
}

func main() {
	ctx := context.Background()
	namespace, deep := table.Identifier{"go"}, table.Identifier{"go", "dé ep"}
	catalog, err := openCatalog(ctx)
	if !step("load the catalog", err) {
		return
	}
	_, err = catalog.ListNamespaces(ctx, nil)
	step("list namespaces", err)
	step("create namespace", catalog.CreateNamespace(ctx, namespace, iceberg.Properties{"owner": "me"}))
	step("create nested namespace", catalog.CreateNamespace(ctx, deep, nil))
	_, err = catalog.ListNamespaces(ctx, namespace)
	step("list nested namespaces", err)
	_, err = catalog.UpdateNamespaceProperties(ctx, namespace, []string{"owner", "nope"}, iceberg.Properties{"k": "v"})
	step("update properties", err)
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "word", Type: iceberg.PrimitiveTypes.String})
	id := table.Identifier{"go", "t"}
	created, err := catalog.CreateTable(ctx, id, schema)
	if !step("create table", err) {
		return
	}
	first, err := created.AppendTable(ctx, rows(1, 2, 3), 1000, nil)
	if !step("append", err) {
		return
	}
	_, err = created.AppendTable(ctx, rows(4), 1000, nil)
	step("append on the former version", err) // it does not try again
	_, err = first.AppendTable(ctx, rows(5), 1000, nil)
	step("append again", err)
	t, err := catalog.LoadTable(ctx, id)
	if !step("load table", err) {
		return
	}
	count(ctx, t)
	t, err = t.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(1)), nil)
	if step("delete rows", err) {
		count(ctx, t)
	}
	change := t.NewTransaction()
	added := change.UpdateSchema(false, false).AddColumn([]string{"extra"}, iceberg.PrimitiveTypes.Float64, "doc", false, nil)
	step("add column", added.Commit())
	_, err = change.Commit(ctx)
	step("commit schema", err)
	renamed := table.Identifier{"go", "dé ep", "t 2"}
	_, err = catalog.RenameTable(ctx, id, renamed)
	step("rename table", err)
	t, err = catalog.LoadTable(ctx, renamed)
	if !step("load renamed table", err) {
		return
	}
	file, back := t.MetadataLocation(), table.Identifier{"go", "back"}
	step("drop table", catalog.DropTable(ctx, renamed))
	_, err = catalog.RegisterTable(ctx, back, file)
	step("register table", err)
	step("drop registered table", catalog.DropTable(ctx, back))
	step("drop nested namespace", catalog.DropNamespace(ctx, deep))
	step("drop namespace", catalog.DropNamespace(ctx, namespace))
}
