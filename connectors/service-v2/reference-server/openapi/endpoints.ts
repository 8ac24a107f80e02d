/**
 * The implemented endpoints: every path and method that the router accepts.
 *
 * Promise: the document lists exactly the endpoints of the router, so that a new one appears without further work.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { route } from "../http/router.ts"

export type Call = "me" | "list" | "create" | "batch" | "retrieve" | "update" | "cancel" | "special" | "webhooks"

export interface Endpoint {
  /** As a template: `/orders/{id}`. */
  readonly path: string
  readonly method: string
  readonly call: Call
  /** The path of the resource; `me` and `webhooks` are not in the catalogue. */
  readonly owner: string
  readonly resource: Resource | null
  /** The path after the id; empty where there is none. */
  readonly special: string
  readonly purpose: string
  /** The scope in `area:access` form; null accepts any token. */
  readonly scope: string | null
  readonly feature: string | null
}

interface Candidate {
  readonly owner: string
  readonly resource: Resource | null
  readonly special: string
  readonly purpose: string
  readonly path: string
}

const candidatesOf = (catalogue: Catalogue): ReadonlyArray<Candidate> => {
  const plain = (owner: string, resource: Resource | null, path: string): Candidate => ({
    owner,
    resource,
    special: "",
    purpose: "",
    path
  })
  const resources = [...catalogue.resources.values()].filter(({ path }) => path !== "webhooks")
  return [
    plain("me", null, "/me"),
    ...resources.flatMap((resource) => {
      const { path, specials } = resource
      const below = [...new Set(specials.map(({ name }) => name))].flatMap((name) => {
        const purpose = specials.find((special) => special.name === name)!.purpose
        const shown = { owner: path, resource, special: name, purpose, path: `/${path}/{id}/${name}` }
        return [shown, { ...shown, special: `${name}/batch`, path: `${shown.path}/batch` }]
      })
      return [
        plain(path, resource, `/${path}`),
        plain(path, resource, `/${path}/batch`),
        plain(path, resource, `/${path}/{id}`),
        ...below
      ]
    }),
    plain("webhooks", null, "/webhooks"),
    plain("webhooks", null, "/webhooks/{id}"),
    { ...plain("webhooks", null, "/webhooks/{id}/test"), special: "test" },
    { ...plain("webhooks", null, "/webhooks/{id}/deliveries"), special: "deliveries" }
  ]
}

export const endpointsOf = (catalogue: Catalogue): ReadonlyArray<Endpoint> =>
  candidatesOf(catalogue).flatMap((candidate) => {
    // For a resource without batch, the router would read `batch` as an id.
    if (candidate.path.endsWith("/batch") && candidate.resource?.operations.includes("B") !== true) {
      if (candidate.special === "") return []
    }
    const match = route(catalogue, candidate.path.replace("{id}", "1"))
    if (match === null) return []
    return [...match.methods].map(([method, { action, scope }]) => ({
      ...candidate,
      method,
      call: action.kind,
      scope,
      feature: match.feature
    }))
  })
