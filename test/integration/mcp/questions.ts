/**
 * Questions to the tools of assistants, at least one for each tool. The answers are computed from the server's own records,
 * without the warehouse and without code of the product. `Questions.long.test.ts` of the models asks more by SQL.
 */
import { type Books, exact, plain, shown } from "../models/figures.ts"

type Data = Record<string, unknown>

export interface Question {
  readonly question: string
  readonly tool: string
  readonly args: Record<string, unknown>
  /** The answer by the source's records. */
  readonly expected: (books: Books) => unknown
  /** The same from the data of the tool's answer. */
  readonly actual: (data: Data, answer: Data) => unknown
}

const rowsOf = (data: Data) => data["rows"] as ReadonlyArray<ReadonlyArray<string | null>>

const queries: ReadonlyArray<Question> = [
  {
    question: "What is the total of all orders that are not cancelled?",
    tool: "query",
    args: { sql: "select sum(ordertotal) from orders where _deleted_at is null and not cancel" },
    expected: (books) =>
      shown(
        books.of("orders").reduce((sum, one) => sum + (one["cancel"] === true ? 0n : exact(one["ordertotal"])), 0n)
      ),
    actual: (data) => plain(rowsOf(data)[0]![0]!)
  },
  {
    question: "Which customer has number 7?",
    tool: "query",
    args: { sql: "select customercode, name from customers where id = $1::bigint", params: [7] },
    expected: (books) => {
      const one = books.of("customers").find(({ id }) => id === 7)!
      return [[one["customercode"], one["name"]]]
    },
    actual: rowsOf
  },
  {
    question: "How many records were known a long time ago?",
    tool: "query",
    args: { sql: "select count(*) from orders", as_of: "2020-01-01 00:00:00+00" },
    expected: () => [["0"]],
    actual: rowsOf
  }
]

const last = <A>(list: ReadonlyArray<A>): A => list.at(-1)!
const explanationsOf = (data: Data) => data["explanations"] as ReadonlyArray<Data>
const recordOf = (data: Data) => JSON.parse(String(explanationsOf(data)[0]!["record"])) as Data

/** The record that the preparation of the test changes once, and the field. */
export const changed = { resource: "customers", id: 3, field: "name", to: "Changed Name Inc." } as const

const others: ReadonlyArray<Question> = [
  {
    question: "What does the warehouse say about customer 5?",
    tool: "explain_record",
    args: { resource: "customers", id: 5 },
    expected: (books) => books.of("customers").find(({ id }) => id === 5)!["name"],
    actual: (data) => recordOf(data)["name"]
  },
  {
    question: "Why does a customer have its name, and which request brought it?",
    tool: "explain_record",
    args: { resource: changed.resource, id: changed.id },
    expected: () => ["update", changed.field, JSON.stringify(changed.to), true],
    actual: (data) => {
      const version = last(explanationsOf(data)[0]!["versions"] as ReadonlyArray<Data>)
      const change = (version["changes"] as ReadonlyArray<Data>).find(({ field }) => field === changed.field)
      return [version["op"], change?.["field"], change?.["to"], String(version["source"]).startsWith("GET /customers")]
    }
  },
  {
    question: "Is invoice 9 known, and is it deleted?",
    tool: "explain_record",
    args: { resource: "invoices", id: "9", company: "main" },
    expected: (books) => (books.of("invoices").some(({ id }) => id === 9) ? "exists" : "unknown"),
    actual: (data) => explanationsOf(data)[0]!["state"]
  },
  {
    question: "What changed last among customers?",
    tool: "list_changes",
    args: { resource: changed.resource, limit: 1 },
    expected: () => [changed.id, "update", true],
    actual: (data) => {
      const one = last(data["changes"] as ReadonlyArray<Data>)
      return [one["id"], one["op"], (one["changed"] as ReadonlyArray<string>).includes(changed.field)]
    }
  },
  {
    question: "What was the first change of an item, with its record?",
    tool: "list_changes",
    args: { resource: "items", after: "beginning", limit: 1, records: true },
    expected: (books) => {
      const one = books.of("items").find(({ id }) => id === 1)!
      return ["insert", one["sku"]]
    },
    actual: (data) => {
      const one = (data["changes"] as ReadonlyArray<Data>)[0]!
      return [one["op"], (JSON.parse(String(one["after"])) as Data)["sku"]]
    }
  },
  {
    question: "How many resources are synced, and was each one read?",
    tool: "freshness",
    args: { company: "main" },
    // One resource has a record in quarantine, and was never read completely.
    expected: () => [true, 0],
    actual: (data) => [Number(data["resources"]) > 50, data["late"]]
  },
  {
    question: "How current are the orders?",
    tool: "freshness",
    args: { resource: "orders" },
    expected: () => [["orders", true]],
    actual: (_, answer) =>
      (answer["freshness"] as ReadonlyArray<Data>).map((one) => [one["resource"], Number(one["age_seconds"]) < 3600])
  },
  {
    question: "Which events may have been missed?",
    tool: "gaps_and_quarantine",
    args: { resource: "orders" },
    expected: () => [["orders", "unobserved"]],
    actual: (_, answer) => (answer["open_gaps"] as ReadonlyArray<Data>).map((one) => [one["resource"], one["cause"]])
  },
  {
    question: "Which records could not be landed?",
    tool: "gaps_and_quarantine",
    args: {},
    expected: () => [["items", "9001", "description"]],
    actual: (data) =>
      (data["quarantine"] as ReadonlyArray<Data>).map((one) => [one["resource"], one["record_id"], one["field"]])
  },
  {
    question: "Which invoices break a rule?",
    tool: "violations",
    args: { company: "main", invariant: "invoice_lines_add_up" },
    expected: () => [["invoice_lines_add_up", "invoices", 9, "planted"]],
    actual: (data) =>
      (data["violations"] as ReadonlyArray<Data>).map((one) => [
        one["invariant"],
        one["resource"],
        one["record_id"],
        one["detail"]
      ])
  },
  {
    question: "Which tables are about shipments?",
    tool: "list_tables",
    args: { search: "shipments", kind: "resource" },
    expected: () => true,
    actual: (data) => (data["tables"] as ReadonlyArray<Data>).some(({ name }) => name === "erp.shipments")
  },
  {
    question: "What is the key of an order in the warehouse, and the type of its total?",
    tool: "describe_table",
    args: { table: "orders" },
    expected: () => [["_company_id", "id"], "numeric(20,4)"],
    actual: (data) => [
      data["primary_key"],
      (data["columns"] as ReadonlyArray<Data>).find(({ name }) => name === "ordertotal")!["type"]
    ]
  },
  {
    question: "How many requests has the next sync of the orders?",
    tool: "plan_sync",
    args: { company: "main", resources: ["orders"] },
    // One for the identity of the token, one for the page.
    expected: () => 2,
    actual: (data) => data["requests"]
  },
  {
    question: "Would a new customer be accepted?",
    tool: "dry_run_push",
    args: {
      company: "main",
      resource: "customers",
      records: '{"externalid":"q-1","customercode":"QUEST1","name":"Question"}'
    },
    expected: () => [true, 1, { batch: 0, single: 1 }],
    actual: (data) => [data["is_valid"], data["valid_records"], data["requests"]]
  },
  {
    question: "What is wrong with this record?",
    tool: "dry_run_push",
    args: {
      company: "main",
      resource: "customers",
      records: '{"externalid":"q-2","customercode":"QUEST2","name":"Q","creditlimit":"x"}'
    },
    expected: () => ["creditlimit"],
    actual: (data) => (data["problems"] as ReadonlyArray<Data>).map(({ field }) => field)
  }
]

export const questions: ReadonlyArray<Question> = [...queries, ...others]
