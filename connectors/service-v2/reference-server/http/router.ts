/**
 * Paths below the base address and what may be done there.
 *
 * Promise: which paths exist follows from the catalogue and from the rules that are built; a path that is not built is
 * not found, and a method that a path does not take is told with the ones it takes (C-02, C-13, I-01).
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Operation, Resource } from "../../../../src/catalogue/Resource.ts"
import { webhookRoute } from "../events/webhooks.ts"
import type { WebhookCall } from "../events/webhooks.ts"
import { rules } from "../rules/index.ts"

export type Action =
  | { readonly kind: "list" | "create" | "batch"; readonly resource: Resource }
  | { readonly kind: "retrieve" | "update" | "cancel"; readonly resource: Resource; readonly id: number | null }
  | { readonly kind: "special"; readonly resource: Resource; readonly id: number | null; readonly name: string }
  | { readonly kind: "webhooks"; readonly call: WebhookCall; readonly id: number | null }
  | { readonly kind: "me" }

export interface Handled {
  readonly action: Action
  /** The scope that is needed; null when any token will do. */
  readonly scope: string | null
}

export interface Route {
  /** The optional module that must be licensed. */
  readonly feature: string | null
  readonly methods: ReadonlyMap<string, Handled>
}

/** The segments of a path, decoded; null when it cannot be a path of ours. */
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

const routeOf = (
  resource: Resource,
  handled: ReadonlyArray<readonly [operation: Operation, method: string, action: Action]>
): Route => {
  const access = (operation: Operation) =>
    operation === "L" || operation === "R" ? "read" : operation === "D" ? "cancel" : "write"
  const offered = handled.filter(([operation]) => resource.operations.includes(operation))
  return {
    feature: resource.feature,
    methods: new Map(
      offered.map(([operation, method, action]) => [method, { action, scope: `${resource.area}:${access(operation)}` }])
    )
  }
}

/** The route of a path below the base address; null when there is none. */
export const route = (catalogue: Catalogue, path: string): Route | null => {
  const segments = segmentsOf(path)
  if (segments === null) return null
  const [first, second, third] = segments
  if (segments.length === 1 && first === "me") {
    return { feature: null, methods: new Map([["GET", { action: { kind: "me" }, scope: null }]]) }
  }
  if (first === "webhooks") return webhookRoute(segments.slice(1), second === undefined ? null : idOf(second))
  const resource = catalogue.resources.get(first ?? "")
  if (resource === undefined) return null
  if (segments.length === 1) {
    return routeOf(resource, [
      ["L", "GET", { kind: "list", resource }],
      ["C", "POST", { kind: "create", resource }]
    ])
  }
  if (segments.length === 2 && second === "batch" && resource.operations.includes("B")) {
    return routeOf(resource, [["B", "POST", { kind: "batch", resource }]])
  }
  const id = idOf(second!)
  if (segments.length === 2) {
    return routeOf(resource, [
      ["R", "GET", { kind: "retrieve", resource, id }],
      ["U", "PATCH", { kind: "update", resource, id }],
      ["D", "DELETE", { kind: "cancel", resource, id }]
    ])
  }
  const special = resource.specials.find(({ name }) => name === third)
  const isBuilt = special !== undefined && rules.get(resource.path)?.specials?.[special.name] !== undefined
  if (segments.length !== 3 || !isBuilt) return null
  const action: Action = { kind: "special", resource, id, name: special.name }
  return { feature: resource.feature, methods: new Map([[special.method, { action, scope: special.scope }]]) }
}
