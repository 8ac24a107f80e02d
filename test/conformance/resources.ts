/** The 25 detailed resources of `facts.ts`, each with what a test needs to write one of its records. */
import { DESCRIBED, type Described, type Field } from "./facts.ts"
import { fresh, idOf, ids, row, type Company, type Row } from "./harness.ts"
import { makeBill, makeDraft, makeGlAccount, makeOrder, makePosted, putOne } from "./world.ts"

export interface Resource extends Described {
  /** Whether a write has the names of the object; otherwise it has a shape of its own. */
  readonly plain: boolean
  /** The required fields of a plain write. */
  readonly base: () => Row
  /** A body that POST accepts, in a company prepared for it. */
  readonly body: (c: Company) => Promise<Row>
  /** Creates a record through the API. */
  readonly make: (c: Company) => Promise<Row>
}

/** The bodies of the resources whose write has a shape of its own. */
const OWN_SHAPE: Readonly<Record<string, (c: Company) => Promise<Row>>> = {
  shipments: async (c) => {
    const order = await makeOrder(c)
    return { orderid: order.id, lines: [{ orderlineid: order.lineIds[0], quantity: "1" }] }
  },
  invoicelines: async (c) => ({
    invoiceid: idOf(await makeDraft(c)),
    description: "x",
    quantity: "1",
    price: "1"
  }),
  payments: async (c) => ({ invoiceid: idOf(await makePosted(c)), amount: "10" }),
  orderdeposits: async (c) => ({ orderid: (await makeOrder(c)).id, amount: "10" }),
  apbilllines: async (c) => ({
    apbillid: idOf(await makeBill(c)),
    glaccountid: idOf(await makeGlAccount(c)),
    amount: "10"
  })
}

export const RESOURCES: readonly Resource[] = DESCRIBED.map((described) => {
  const { path, key } = described
  const base = (): Row => (key === undefined ? {} : { [key.name]: fresh("key") })
  const body = OWN_SHAPE[path] ?? (async () => base())
  return {
    ...described,
    plain: !(path in OWN_SHAPE),
    base,
    body,
    make: async (c) => c.create(path, await body(c))
  }
})

/** A body that every PATCH accepts, and the field that shows it. */
export const CHANGE: Row = { externalid: "changed" }

export function resource(path: string): Resource {
  const match = RESOURCES.find((each) => each.path === path)
  if (match === undefined) throw new Error(`no such resource in this suite: ${path}`)
  return match
}

/** Whether its records have lastchangedate. This differs from offering modifiedsince. */
export function dated({ fields }: Resource): boolean {
  return fields.some((field) => field.name === "lastchangedate")
}

/** A record of the resource as a list shows it: the resources without R are read through their list. */
export async function shownRecord(c: Company, each: Resource, id: number): Promise<Row> {
  if (each.ops.includes("R")) return c.read(each.path, id)
  const all = await c.list(`/${each.path}?limit=250&cancel=any`)
  return row(
    all.find((record) => record["id"] === id),
    `${each.path} ${id} in its list`
  )
}

/** Inserts rows directly into the store. The shared terms need keys of their own. */
export async function putRows(c: Company, path: string, records: readonly Row[], at?: string): Promise<number[]> {
  const named = path === "invoiceterms" ? records.map((each) => ({ verbal: fresh("row"), ...each })) : records
  return ids(await c.put(path, named, at))
}

/** A record that this pair can point to. */
export async function target(
  c: Company,
  { pair, name }: Field
): Promise<{ readonly id: number; readonly code: string }> {
  if (pair === undefined) throw new Error(`${name} is no pair`)
  const code = fresh("").slice(-10)
  return { id: await putOne(c, pair.table, { [pair.key]: code }), code }
}
