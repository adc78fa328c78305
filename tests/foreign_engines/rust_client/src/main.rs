//! What a user of iceberg-rust does in a namespace, step by step: each prints whether it was done, or what it met.
mod catalog;

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use iceberg::{
    Catalog, Error, ErrorKind, NamespaceIdent, Result, TableCreation, TableIdent,
    arrow::schema_to_arrow_schema,
    spec::{DataFileFormat, NestedField, PrimitiveType, Schema, Type},
    table::Table,
    transaction::{ApplyTransactionAction, Transaction},
    writer::{
        IcebergWriter, IcebergWriterBuilder,
        base_writer::data_file_writer::DataFileWriterBuilder,
        file_writer::{
            ParquetWriterBuilder,
            location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator},
            rolling_writer::RollingFileWriterBuilder,
        },
    },
};

fn step<T>(name: &str, result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => {
            println!("ok   {name}");
            Some(value)
        }
        Err(error) => {
            println!("FAIL {name}: {}", error.to_string().replace('\n', " ").chars().take(500).collect::<String>());
            None
        }
    }
}

async fn append(catalog: &impl Catalog, table: &Table, ids: Vec<i64>) -> Result<Table> {
    let schema = Arc::new(schema_to_arrow_schema(table.metadata().current_schema())?);
    let words: ArrayRef = Arc::new(StringArray::from(vec!["rust é"; ids.len()]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(ids)), words])
        .map_err(|error| Error::new(ErrorKind::Unexpected, error.to_string()))?;
    let places = DefaultLocationGenerator::new(table.metadata())?;
    let unique = format!("{:?}", SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos());
    let names = DefaultFileNameGenerator::new("rust".into(), Some(unique), DataFileFormat::Parquet);
    let parquet = ParquetWriterBuilder::new(Default::default(), table.metadata().current_schema().clone());
    let rolling = RollingFileWriterBuilder::new_with_default_file_size(parquet, table.file_io().clone(), places, names);
    let mut writer = DataFileWriterBuilder::new(rolling).build(None).await?;
    writer.write(batch).await?;
    let files = writer.close().await?;
    let change = Transaction::new(table);
    change.fast_append().add_data_files(files).apply(change)?.commit(catalog).await
}

async fn rows(table: &Table) -> Result<usize> {
    let batches: Vec<RecordBatch> = table.scan().select_all().build()?.to_arrow().await?.try_collect().await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

#[tokio::main]
async fn main() {
    let namespace = NamespaceIdent::new(std::env::args().nth(1).expect("a namespace"));
    let deep = NamespaceIdent::from_vec(vec![namespace.to_string(), "dé ep".into()]).unwrap();
    let Some(catalog) = step("load the catalog", catalog::open_catalog().await) else { return };
    step("list namespaces", catalog.list_namespaces(None).await);
    step("create namespace", catalog.create_namespace(&namespace, HashMap::from([("owner".into(), "me".into())])).await);
    step("create nested namespace", catalog.create_namespace(&deep, HashMap::new()).await);
    if let Some(loaded) = step("get nested namespace", catalog.get_namespace(&deep).await) {
        println!("location {}", loaded.properties()["location"]);
    }
    step("list nested namespaces", catalog.list_namespaces(Some(&namespace)).await);
    step("update_namespace", catalog.update_namespace(&namespace, HashMap::from([("k".into(), "v".into())])).await);
    let fields = vec![
        NestedField::optional(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
        NestedField::optional(2, "word", Type::Primitive(PrimitiveType::String)).into(),
    ];
    let schema = Schema::builder().with_schema_id(0).with_fields(fields).build().unwrap();
    let creation = |name: &str| TableCreation::builder().name(name.into()).schema(schema.clone()).build();
    let id = TableIdent::new(namespace.clone(), "t".into());
    let Some(table) = step("create table", catalog.create_table(&namespace, creation("t")).await) else { return };
    if step("append", append(&catalog, &table, vec![1, 2, 3]).await).is_none() {
        return;
    }
    // a table that a commit returns does not have what the server sent of its bucket
    let Some(first) = step("load after append", catalog.load_table(&id).await) else { return };
    step("append on the former version", append(&catalog, &table, vec![4]).await);
    let (one, other) = tokio::join!(append(&catalog, &first, vec![5]), append(&catalog, &first, vec![6]));
    step("one of two at a time", one);
    step("the other of two at a time", other);
    let Some(table) = step("load table", catalog.load_table(&id).await) else { return };
    if let Some(count) = step("count", rows(&table).await) {
        println!("ok   rows {count}");
    }
    let change = Transaction::new(&table);
    let change = change.update_table_properties().set("a".into(), "b".into()).apply(change).unwrap();
    step("set property", change.commit(&catalog).await);
    let renamed = TableIdent::new(deep.clone(), "t 2".into());
    step("rename table", catalog.rename_table(&id, &renamed).await);
    let Some(table) = step("load renamed table", catalog.load_table(&renamed).await) else { return };
    let file = table.metadata_location().map(str::to_string).expect("a metadata file");
    step("drop table", catalog.drop_table(&renamed).await);
    let back = TableIdent::new(namespace.clone(), "back".into());
    step("register table", catalog.register_table(&back, file).await);
    step("drop registered table", catalog.drop_table(&back).await);
    step("drop nested namespace", catalog.drop_namespace(&deep).await);
    step("drop namespace", catalog.drop_namespace(&namespace).await);
}
