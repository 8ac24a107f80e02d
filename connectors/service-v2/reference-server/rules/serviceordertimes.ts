/**
 * Hours on service orders (J-08).
 *
 * Promise: only a service order that is not billed yet accepts hours. Billing the order makes an order line of each
 * unbilled entry, once; then the entry cannot change.
 */
import { ApiError } from "../ApiError.ts"
import { format, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf } from "./body.ts"
import type { Context, Rules, Written } from "./Rules.ts"
import { today } from "./Rules.ts"
import { linesOf } from "./orderState.ts"
import { active, change, current, insert, violation } from "./records.ts"

/** Values of `status`. */
const open = 0
const billed = 2

/** A quote does not count as a service order, whatever its type (STATE-03). */
const isServiceOrder = ({ values }: Version) => values["ordertype"] === "service" && values["status"] !== "quote"

const refuseOrder = (order: Version, at: string) => {
  const field = `${at}orderid`
  if (isServiceOrder(order) && order.values["status"] === "billed") {
    throw new ApiError("order_already_billed", `order ${order.id} is billed`, { field })
  }
  if (!isServiceOrder(order)) {
    throw new ApiError("hours_require_service_order", `order ${order.id} is no service order`, { field })
  }
  if (order.cancelled) throw violation(`order ${order.id} is cancelled`, field)
}

const refuseHours = (hours: Value | undefined, at: string) => {
  if (units(hours, 6) <= 0n) throw violation("hours must be more than zero", `${at}hours`)
}

export const insertHours = (
  context: Context,
  order: Version,
  values: Readonly<Record<string, Value>>,
  at = "",
  body: Body | null = null
): Version => {
  refuseOrder(order, at)
  refuseHours(values["hours"], at)
  const date = values["date"] ?? today(context)
  return insert(context, "serviceordertimes", { ...values, orderid: order.id, date, status: open }, body)
}

const create = (context: Context, resource: Version["table"]["resource"], body: Body): Written => {
  const patch = patchOf(resource, "create", body)
  return { version: insertHours(context, current(context, "orders", patch["orderid"]), patch, "", body) }
}

const refuseBilled = ({ id, values }: Version) => {
  if (values["status"] === billed) throw new ApiError("hours_already_billed", `the hours ${id} are billed`)
}

const update = (context: Context, time: Version, body: Body): Written => {
  const patch = patchOf(time.table.resource, "update", body)
  refuseBilled(time)
  if (time.cancelled) throw violation(`the hours ${time.id} are cancelled`)
  if ("orderid" in patch) refuseOrder(current(context, "orders", patch["orderid"]), "")
  if ("hours" in patch) refuseHours(patch["hours"], "")
  return { version: change(context, time, patch, body) }
}

const cancel = (context: Context, time: Version): Written => {
  refuseBilled(time)
  return { version: change(context, time, { cancel: true }) }
}

export const serviceordertimes: Rules = { create, update, cancel }

/** Hours are sold at the price of the item whose sku is the name of their work type; without one they are free. */
const itemOf = ({ store, company }: Context, worktype: Value | undefined): Version | undefined =>
  typeof worktype === "string"
    ? store
        .table(company, "items")
        .where("sku", worktype)
        .find(({ cancelled }) => !cancelled)
    : undefined

/** The field of an order line that stores the id of its hours. */
const timeField = "_timeid"

/** The hours from which an order line was made. */
export const hoursOf = ({ store, company }: Context, line: Version): Version | undefined => {
  const id = line.values[timeField]
  return typeof id === "number" ? store.table(company, "serviceordertimes").get(id) : undefined
}

/** Makes order lines of the unbilled hours. Worked hours count as shipped. */
export const billHours = (context: Context, order: Version): void => {
  if (!isServiceOrder(order)) return
  let linenumber = Number(linesOf(context, order.id).at(-1)?.values["linenumber"] ?? 0)
  for (const time of active(context, "serviceordertimes", "orderid", order.id)) {
    const { status, hours, note, worktypeid } = time.values
    if (status === billed) continue
    const worktype =
      typeof worktypeid === "number"
        ? context.store.table(context.company, "worktypes").get(worktypeid)?.values["name"]
        : undefined
    const item = itemOf(context, worktype)
    insert(context, "orderlines", {
      [timeField]: time.id,
      orderid: order.id,
      linenumber: ++linenumber,
      itemid: item?.id ?? null,
      description: note ?? worktype ?? "Hours",
      qtyorder: hours ?? null,
      qtyship: hours ?? null,
      qtybilled: format(0n, 6),
      priceach: item?.values["price"] ?? format(0n, 6)
    })
    change(context, time, { status: billed })
  }
}
