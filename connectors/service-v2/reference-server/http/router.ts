/**
 * Paths below the base address and their methods.
 *
 * Promise: the existing paths follow from the catalogue and from the implemented rules. Any other path is not found,
 * and a method that a path lacks is refused with a list of the allowed ones (C-02, C-13, I-01).
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Operation, Resource } from "../../../../src/catalogue/Resource.ts"
import { webhookRoute } from "../events/webhooks.ts"
import { ApiError } from "../ApiError.ts"
import { rules } from "../rules/index.ts"
import type { SpecialRule } from "../rules/Rules.ts"
import type { Action, Route } from "./Route.ts"

/** The decoded segments of a path; null when the path is outside the API. */
const segmentsOf = (path: string): ReadonlyArray<string> | null => {
  if (!path.startsWith("/")) return null
  try {
    return path.slice(1).split("/").map(decodeURIComponent)
  } catch {
    return null
  }
}

const idOf = (segment: string): number | null => {
  const id = /^[1-9]\d{0,15}$/.test(segment) ? Number(segment) : Number.NaN
  return Number.isSafeInteger(id) ? id : null
}

const allOperations: ReadonlyArray<Operation> = ["L", "C", "B", "R", "U", "D"]

/** The operations of a resource; the other reading allows all (I-01). */
export const operationsOf = (resource: Resource, isEverything: boolean): ReadonlyArray<Operation> =>
  isEverything ? allOperations : resource.operations

const routeOf = (
  resource: Resource,
  operations: ReadonlyArray<Operation>,
  handled: ReadonlyArray<readonly [operation: Operation, method: string, action: Action]>
): Route => {
  const access = (operation: Operation) =>
    operation === "L" || operation === "R" ? "read" : operation === "D" ? "cancel" : "write"
  const offered = handled.filter(([operation]) => operations.includes(operation))
  return {
    feature: resource.feature,
    methods: new Map(
      offered.map(([operation, method, action]) => [method, { action, scope: `${resource.area}:${access(operation)}` }])
    )
  }
}

const refuseFile = (): never => {
  throw new ApiError("not_batchable", "a file cannot be asked for inside a batch")
}

/** A file below a record, requested in a batch (G-07). */
const fileBatch: SpecialRule = { refuse: refuseFile, run: refuseFile }

/** The route of a path below the base address; null when there is none. */
export const route = (catalogue: Catalogue, path: string, isEverything = false): Route | null => {
  const segments = segmentsOf(path)
  if (segments === null) return null
  const [first, second, third] = segments
  if (segments.length === 1 && first === "me") {
    return { feature: null, methods: new Map([["GET", { action: { kind: "me" }, scope: null }]]) }
  }
  if (first === "webhooks") return webhookRoute(segments.slice(1), second === undefined ? null : idOf(second))
  const resource = catalogue.resources.get(first ?? "")
  if (resource === undefined) return null
  const operations = operationsOf(resource, isEverything)
  if (segments.length === 1) {
    return routeOf(resource, operations, [
      ["L", "GET", { kind: "list", resource }],
      ["C", "POST", { kind: "create", resource }]
    ])
  }
  if (segments.length === 2 && second === "batch" && operations.includes("B")) {
    return routeOf(resource, operations, [["B", "POST", { kind: "batch", resource }]])
  }
  const id = idOf(second!)
  if (segments.length === 2) {
    return routeOf(resource, operations, [
      ["R", "GET", { kind: "retrieve", resource, id }],
      ["U", "PATCH", { kind: "update", resource, id }],
      ["D", "DELETE", { kind: "cancel", resource, id }]
    ])
  }
  const special = resource.specials.find(({ name }) => name === third)
  const rule = special === undefined ? undefined : rules.get(resource.path)?.specials?.[special.name]
  if (special === undefined || rule === undefined) return null
  const { feature } = resource
  const one = (method: string, action: Action): Route => ({
    feature,
    methods: new Map([[method, { action, scope: special.scope }]])
  })
  if (segments.length === 3) return one(special.method, { kind: "special", resource, id, rule })
  const isFileBatch = segments.length === 4 && segments[3] === "batch" && rule.isFile === true
  return isFileBatch ? one("POST", { kind: "special", resource, id, rule: fileBatch }) : null
}
