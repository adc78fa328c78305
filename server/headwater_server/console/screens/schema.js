// A schema as a table of columns, nested ones indented, and the texts of partitions and order.

import { html } from "../ui.js";
import { Table } from "../parts/rows.js";
import { Tag } from "../parts/base.js";

export function SchemaTable({ schema }) {
  const keys = new Set(schema["identifier-field-ids"] ?? []);
  return html`<${Table} label="Columns" rows=${columnsOf(schema)} keyOf=${({ field }) => field.id} empty="No columns" columns=${[
    { title: "#", isNumber: true, of: ({ field }) => html`<span class="quiet">${field.id}</span>` },
    { title: "Column", isWide: true, of: ({ field, level }) => html`<span style=${{ paddingInlineStart: `${level * 18}px` }}><bdi class="strong">${field.name}</bdi>${keys.has(field.id) && html` <${Tag} tone="good">identifier<//>`}</span>` },
    { title: "Type", of: ({ field }) => html`<code>${typeText(field.type)}</code>` },
    { title: "", of: ({ field }) => (field.required ? html`<${Tag}>required<//>` : html`<span class="quiet">optional</span>`) },
    { title: "Comment", isWide: true, of: ({ field }) => html`<bdi>${field.doc ?? ""}</bdi>` },
  ]} />`;
}

function columnsOf(type, level = 0) {
  return fieldsOf(type).flatMap((field) => [{ field, level }, ...columnsOf(field.type, level + 1)]);
}

function fieldsOf(type) {
  if (type?.type === "struct") return type.fields;
  if (type?.type === "list") return fieldsOf(type.element);
  if (type?.type === "map") return fieldsOf(type.value);
  return [];
}

function typeText(type) {
  if (typeof type === "string") return type;
  if (type.type === "list") return `list<${typeText(type.element)}>`;
  if (type.type === "map") return `map<${typeText(type.key)}, ${typeText(type.value)}>`;
  return type.type;
}

const nameOf = (schema, id) => columnsOf(schema).find(({ field }) => field.id === id)?.field.name ?? `#${id}`;

export function partitionText(data, schema) {
  const spec = (data.partitionSpecs ?? []).find((each) => each["spec-id"] === data.defaultSpecId);
  const fields = (spec?.fields ?? []).filter((field) => field.transform !== "void");
  if (!fields.length) return "not partitioned";
  return html`<code>${fields.map((field) => transformed(field.transform, nameOf(schema, field["source-id"]))).join(", ")}</code>`;
}

export function sortText(data, schema) {
  const order = (data.sortOrders ?? []).find((each) => each["order-id"] === data.defaultSortOrderId);
  if (!order?.fields?.length) return "not sorted";
  return html`<code>${order.fields.map((field) => `${transformed(field.transform, nameOf(schema, field["source-id"]))} ${field.direction}`).join(", ")}</code>`;
}

const transformed = (transform, name) => (transform === "identity" ? name : `${transform}(${name})`);
