/**
 * The records of a company as plain values, for figures without SQL: decimals as whole numbers of 10^-12, days as numbers
 * of days. This module shares no code with the product.
 */

export type Json = Readonly<Record<string, unknown>>
/** A row of a view: every value as canonical text. */
export type Row = Readonly<Record<string, string | null>>

/** The records of one company by resource, from the server. */
export interface Books {
  readonly company: number
  readonly of: (resource: string) => ReadonlyArray<Json>
}

const scale = 12

export const text = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** A decimal in units of 10^-12. Null counts as zero. */
export const exact = (value: unknown): bigint => {
  const decimal = text(value)
  if (decimal === null) return 0n
  const match = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(decimal)
  if (match === null) throw new Error(`${decimal} is not a decimal`)
  const units = BigInt(match[2]! + (match[3] ?? "").padEnd(scale, "0"))
  return match[1] === "-" ? -units : units
}

/** The shortest text of a decimal. */
export const shown = (units: bigint): string => {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, "0")
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, "")
  return units < 0n ? `-${text}` : text
}

/** A decimal of SQL in its shortest text. */
export const plain = (text: string | null): string | null => (text === null ? null : shown(exact(text)))

/** A product, rounded to 4 decimals, half away from zero. */
export const times = (quantity: unknown, price: unknown): bigint => {
  const product = exact(quantity) * exact(price)
  const step = 10n ** BigInt(2 * scale - 4)
  const rounded = ((product < 0n ? -product : product) + step / 2n) / step
  return (product < 0n ? -rounded : rounded) * 10n ** BigInt(scale - 4)
}

export const dayNumber = (day: unknown): number | null =>
  typeof day === "string" ? Date.parse(`${day}T00:00:00Z`) / 86_400_000 : null
export const dayText = (number: number): string => new Date(number * 86_400_000).toISOString().slice(0, 10)
export const daysBetween = (from: unknown, to: unknown): string | null => {
  const begin = dayNumber(from)
  const end = dayNumber(to)
  return begin === null || end === null ? null : String(end - begin)
}
export const monthOf = (day: unknown): string | null => (typeof day === "string" ? `${day.slice(0, 7)}-01` : null)

export const money = (value: unknown): string | null =>
  value === null || value === undefined ? null : shown(exact(value))
export const sum = (
  records: ReadonlyArray<Json>,
  field: string,
  counts: (record: Json) => boolean = () => true
): bigint => records.reduce((total, record) => (counts(record) ? total + exact(record[field]) : total), 0n)
/** A sum as in SQL: null if there is no value at all. */
const sumOrNothing = (records: ReadonlyArray<Json>, field: string): string | null =>
  records.every((record) => (record[field] ?? null) === null) ? null : shown(sum(records, field))
/** Columns of a view by the fields of records: `customer_id=customerid customer` names two. */
const columns = (names: string, valueOf: (field: string) => string | null): Row =>
  Object.fromEntries(
    names.split(" ").map((name) => {
      const [column, field = name] = name.split("=")
      return [column!, valueOf(field)]
    })
  )
export const texts = (record: Json | undefined, names: string): Row => columns(names, (field) => text(record?.[field]))
export const sums = (records: ReadonlyArray<Json>, names: string): Row =>
  columns(names, (field) => shown(sum(records, field)))
export const sumsOrNothing = (records: ReadonlyArray<Json>, names: string): Row =>
  columns(names, (field) => sumOrNothing(records, field))

const days = (records: ReadonlyArray<Json>, field: string): ReadonlyArray<string> =>
  records
    .map((record) => record[field])
    .filter((day) => typeof day === "string")
    .sort()
export const earliest = (records: ReadonlyArray<Json>, field: string): string | null => days(records, field)[0] ?? null
export const latest = (records: ReadonlyArray<Json>, field: string): string | null =>
  days(records, field).at(-1) ?? null

export const grouped = (
  records: ReadonlyArray<Json>,
  key: (record: Json) => unknown
): ReadonlyArray<ReadonlyArray<Json>> => [
  ...Map.groupBy(records, (record) => JSON.stringify(key(record) ?? null)).values()
]

/** Cached results for the same books. */
const memory = new WeakMap<Books, Map<string, unknown>>()
const remembered = <A>(books: Books, name: string, compute: () => A): A => {
  const results = memory.get(books) ?? new Map<string, unknown>()
  memory.set(books, results)
  if (!results.has(name)) results.set(name, compute())
  return results.get(name) as A
}

export const active = (books: Books, resource: string): ReadonlyArray<Json> =>
  remembered(books, `active ${resource}`, () => books.of(resource).filter((record) => record["cancel"] !== true))
export const isPosted = (record: Json): boolean => (record["voucherid"] ?? null) !== null
export const posted = (books: Books): ReadonlyArray<Json> =>
  remembered(books, "posted", () => active(books, "invoices").filter(isPosted))
export const openOf = (invoice: Json): bigint => exact(invoice["invoicetotal"]) - exact(invoice["invoicepaid"])
export const find = (books: Books, resource: string, id: unknown): Json | undefined =>
  remembered(books, `by id ${resource}`, () => new Map(books.of(resource).map((record) => [record["id"], record]))).get(
    id
  )

/** The documented payment methods. */
export const methods: Readonly<Record<number, string>> = {
  0: "on account or unset",
  1: "cash",
  2: "check",
  3: "credit card",
  4: "ACH/EFT",
  5: "POS card terminal",
  99: "write-off"
}
/** The records that are not cancelled, by the value of a field. */
export const activeBy = (books: Books, resource: string, field: string): ReadonlyMap<unknown, ReadonlyArray<Json>> =>
  remembered(books, `active ${resource} by ${field}`, () =>
    Map.groupBy(active(books, resource), (record) => record[field] ?? null)
  )

/** The field that dates a document. */
const dayFields: Readonly<Record<string, string>> = {
  apbills: "billdate",
  ardailycloses: "closedate",
  inventorycounts: "countdate",
  invoices: "invoicedate",
  jobdraws: "entrydate",
  orderdeposits: "entrydate",
  orders: "orderdate",
  payments: "datereceived",
  purchaseorders: "orderdate",
  rmareturns: "return_date",
  serviceordertimes: "date",
  shipments: "shipdate"
}

export const isAfter = (value: unknown, day: string): boolean => typeof value === "string" && value.slice(0, 10) > day

/** The resources of a view whose later documents do not count, and whether its invoices have the amounts of the day. */
export interface DayRule {
  readonly without: ReadonlyArray<string>
  readonly amounts?: true
}

/** The invoices with what was invoiced and paid by the day. */
const onDay = (books: Books, day: string): ReadonlyArray<Json> => {
  const payments = activeBy(books, "payments", "invoiceid")
  return books.of("invoices").map((invoice) => {
    const own = payments.get(invoice["id"]) ?? []
    const later = own.filter((payment) => isAfter(payment["datereceived"], day))
    const received = sum(own, "amount") - sum(later, "amount")
    return isAfter(invoice["invoicedate"], day)
      ? { ...invoice, invoicetotal: "0", invoicepaid: shown(received) }
      : { ...invoice, invoicepaid: shown(exact(invoice["invoicepaid"]) - sum(later, "amount")) }
  })
}

/** The books at the end of a day. */
export const until = (books: Books, day: string, { without, amounts }: DayRule): Books =>
  remembered(books, `until ${day} ${without.join(" ")} ${String(amounts)}`, () => ({
    company: books.company,
    of: (resource) => {
      const records = resource === "invoices" && amounts === true ? onDay(books, day) : books.of(resource)
      if (!without.includes(resource)) return records
      return records.filter((record) => !isAfter(record[dayFields[resource]!], day))
    }
  }))
