/**
 * Forty questions to the tools of assistants. The answers are computed from the server's own records, without the
 * warehouse and without code of the product.
 */
import { type Books, exact, figures, plain, shown } from "../models/figures.ts"

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
const single = (data: Data) => rowsOf(data)[0]?.[0] ?? null
const decimal = (data: Data) => plain(single(data))

const live = (books: Books, resource: string) => books.of(resource).filter((one) => one["cancel"] !== true)
const total = (records: ReadonlyArray<Data>, field: string) =>
  shown(records.reduce((sum, one) => sum + exact(one[field]), 0n))
const counted = (records: ReadonlyArray<Data>, field: string): ReadonlyArray<readonly [string, string]> => {
  const counts = new Map<string, number>()
  for (const one of records) counts.set(String(one[field]), (counts.get(String(one[field])) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => [name, String(count)])
}

const sql = (
  question: string,
  text: string,
  expected: Question["expected"],
  actual: Question["actual"] = single,
  more: Record<string, unknown> = {}
): Question => ({ question, tool: "query", args: { sql: text, ...more }, expected, actual })

const count = (question: string, resource: string): Question =>
  sql(question, `select count(*) from ${resource} where _deleted_at is null`, (books) =>
    String(books.of(resource).length)
  )

const counts: ReadonlyArray<Question> = [
  count("How many customers are there?", "customers"),
  count("How many orders are there?", "orders"),
  count("How many invoices are there?", "invoices"),
  count("How many payments are there?", "payments"),
  count("How many items are there?", "items"),
  count("How many shipments are there?", "shipments"),
  count("How many order lines are there?", "orderlines"),
  count("How many vendors are there?", "vendors")
]

const figuresOfRecords: ReadonlyArray<Question> = [
  sql(
    "What is the total of all orders that are not cancelled?",
    "select sum(ordertotal) from orders where _deleted_at is null and not cancel",
    (books) => total(live(books, "orders"), "ordertotal"),
    decimal
  ),
  sql(
    "What was invoiced in total?",
    "select sum(invoicetotal) from invoices where _deleted_at is null",
    (books) => total(books.of("invoices"), "invoicetotal"),
    decimal
  ),
  sql(
    "What was paid in total, without cancelled payments?",
    "select sum(amount) from payments where _deleted_at is null and not cancel",
    (books) => total(live(books, "payments"), "amount"),
    decimal
  ),
  sql(
    "How many orders are in each status?",
    'select status, count(*) from orders where _deleted_at is null group by 1 order by status collate "C"',
    (books) => counted(books.of("orders"), "status"),
    rowsOf
  ),
  sql(
    "How many orders has each type?",
    'select ordertype, count(*) from orders where _deleted_at is null group by 1 order by ordertype collate "C"',
    (books) => counted(books.of("orders"), "ordertype"),
    rowsOf
  ),
  sql(
    "Which customer has number 7?",
    "select customercode, name from customers where id = $1::bigint",
    (books) => {
      const one = books.of("customers").find(({ id }) => id === 7)!
      return [[one["customercode"], one["name"]]]
    },
    rowsOf,
    { params: [7] }
  ),
  sql(
    "What is the highest credit limit?",
    "select max(creditlimit) from customers where _deleted_at is null",
    (books) =>
      shown(
        books
          .of("customers")
          .reduce((most, one) => (exact(one["creditlimit"]) > most ? exact(one["creditlimit"]) : most), 0n)
      ),
    decimal
  ),
  sql(
    "When was the first order?",
    "select min(orderdate) from orders where _deleted_at is null",
    (books) =>
      books
        .of("orders")
        .map((one) => String(one["orderdate"]))
        .sort()[0]
  ),
  sql("When was the last invoice?", "select max(invoicedate) from invoices where _deleted_at is null", (books) =>
    books
      .of("invoices")
      .map((one) => String(one["invoicedate"]))
      .sort()
      .at(-1)
  ),
  sql(
    "What did the customer with the code of number 31 order?",
    "select count(*), sum(o.ordertotal) from orders o join customers c on c._company_id = o._company_id and c.id = o.customerid where c.id = 31 and o._deleted_at is null",
    (books) => {
      const own = books.of("orders").filter(({ customerid }) => customerid === 31)
      return [String(own.length), total(own, "ordertotal")]
    },
    (data) => [rowsOf(data)[0]![0], plain(rowsOf(data)[0]![1]!)]
  ),
  sql(
    "What is the quantity of all order lines?",
    "select sum(qtyorder) from orderlines where _deleted_at is null",
    (books) => total(books.of("orderlines"), "qtyorder"),
    decimal
  ),
  sql(
    "Which items cost more than a given price?",
    'select sku from items where _deleted_at is null and price > $1::numeric order by sku collate "C"',
    (books) =>
      books
        .of("items")
        .filter((one) => exact(one["price"]) > exact("100"))
        .map((one) => String(one["sku"]))
        .sort()
        .map((sku) => [sku]),
    rowsOf,
    { params: ["100"] }
  ),
  sql(
    "In which states are the addresses of customers?",
    'select state, count(*) from shiptos where _deleted_at is null group by 1 order by state collate "C"',
    (books) => counted(books.of("shiptos"), "state"),
    rowsOf
  ),
  sql(
    "How many invoices have no payment?",
    "select count(*) from invoices i where i._deleted_at is null and not exists (select from payments p where p._company_id = i._company_id and p.invoiceid = i.id and p._deleted_at is null)",
    (books) => {
      const paid = new Set(books.of("payments").map((one) => one["invoiceid"]))
      return String(books.of("invoices").filter(({ id }) => !paid.has(id)).length)
    }
  )
]

/** The rows of a model, with one text and one decimal of each. */
const model = (question: string, name: string, key: string, amount: string): Question => {
  return sql(
    question,
    `select ${key}::text, ${amount} from ${name} where company_id = 1 order by (${key}::text) collate "C", 2`,
    (books) =>
      figures[name]!(books, new Date().toISOString().slice(0, 10))
        .map((row) => [row[key], plain(row[amount]!)])
        .sort((a, b) => (a[0]! < b[0]! ? -1 : a[0]! > b[0]! ? 1 : exact(a[1]) < exact(b[1]) ? -1 : 1)),
    (data) => rowsOf(data).map(([one, other]) => [one, plain(other!)]),
    { limit: 1000 }
  )
}

const models: ReadonlyArray<Question> = [
  model("What does each customer owe?", "customer_balances", "customer_id", "balance"),
  model("Which invoices are open, with which amount?", "receivables_open", "invoice_id", "open_amount"),
  sql(
    "How much is open in total?",
    "select sum(open_amount) from receivables_open where company_id = 1",
    (books) => {
      const rows = figures["receivables_open"]!(books, new Date().toISOString().slice(0, 10))
      return shown(rows.reduce((sum, row) => sum + exact(row["open_amount"]), 0n))
    },
    decimal
  ),
  sql(
    "How many order lines are still to ship?",
    "select count(*) from open_order_lines where company_id = 1",
    (books) => String(figures["open_order_lines"]!(books, new Date().toISOString().slice(0, 10)).length)
  ),
  sql(
    "What was the revenue in all months?",
    "select sum(amount) from revenue_by_month where company_id = 1",
    (books) => {
      const rows = figures["revenue_by_month"]!(books, new Date().toISOString().slice(0, 10))
      return shown(rows.reduce((sum, row) => sum + exact(row["amount"]), 0n))
    },
    decimal
  ),
  sql("How many records were known a long time ago?", "select count(*) from orders", () => "0", single, {
    as_of: "2020-01-01 00:00:00+00"
  })
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

export const questions: ReadonlyArray<Question> = [...counts, ...figuresOfRecords, ...models, ...others]
