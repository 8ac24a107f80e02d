/** Names and addresses for printed documents. */
import type { Context } from "../rules/Rules.ts"
import type { Value } from "../json.ts"
import type { Version } from "../store/Table.ts"
import { say } from "./pdf.ts"

const record = ({ store, company }: Context, path: string, id: Value | undefined): Version | undefined =>
  typeof id === "number" ? store.table(company, path).get(id) : undefined

export const customerLines = (context: Context, id: Value | undefined): ReadonlyArray<string> => {
  const values = record(context, "customers", id)?.values
  return values === undefined ? [] : [say(values["name"]), say(values["customercode"])]
}

export const shiptoLines = (context: Context, id: Value | undefined): ReadonlyArray<string> => {
  const values = record(context, "shiptos", id)?.values
  if (values === undefined) return []
  const place = [say(values["city"]), say(values["state"]), say(values["zip"])].filter((part) => part !== "")
  return [say(values["name"]), say(values["address"]), place.join(" "), say(values["country"])]
}
