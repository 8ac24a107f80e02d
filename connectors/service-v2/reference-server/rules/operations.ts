/**
 * Create, update and cancel for all resources.
 *
 * Promise: each is one atomic write, and calls the document's own rules where there are any. Checks run in the order of
 * D-03: body and references, then If-Match, then the document.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { ApiError } from "../ApiError.ts"
import type { Version } from "../store/Table.ts"
import type { Body } from "./body.ts"
import { patchOf, readBody } from "./body.ts"
import type { Context, Shown, SpecialRule, Written } from "./Rules.ts"
import { change, insert, violation } from "./records.ts"

const refuseWithoutScope = (context: Context, scope: string, what: string) => {
  if (context.scopes.has(scope)) return
  throw new ApiError("insufficient_scope", `${what} needs the scope ${scope}`, {
    headers: { "WWW-Authenticate": `Bearer realm="api", error="insufficient_scope", scope="${scope}"` }
  })
}

const refuseWithoutCancelScope = (context: Context, resource: Resource) =>
  refuseWithoutScope(context, `${resource.area}:cancel`, "cancelling")

export const create = (context: Context, resource: Resource, input: unknown): Written =>
  context.store.transact(() => {
    const rules = context.rules.get(resource.path)
    for (const scope of rules?.scopesOf?.(input) ?? []) refuseWithoutScope(context, scope, "what is nested")
    const body = readBody(context, resource, "create", input)
    if (body.values["cancel"] === true) refuseWithoutCancelScope(context, resource)
    if (rules?.create !== undefined) return rules.create(context, resource, body)
    return { version: insert(context, resource.path, patchOf(resource, "create", body), body) }
  })

/** Updates the record that `find` returns; `precondition` throws when the caller has another version. */
export const update = (
  context: Context,
  resource: Resource,
  input: unknown,
  find: () => Version,
  precondition: (version: Version) => void
): Written =>
  context.store.transact(() => {
    const body = readBody(context, resource, "update", input, () => void find())
    const version = find()
    precondition(version)
    const { cancel: cancelValue, ...values } = body.values
    const isCancelling = cancelValue === true && !version.cancelled
    if (isCancelling) refuseWithoutCancelScope(context, resource)
    if (cancelValue === false && version.cancelled) {
      throw violation(`${resource.path} ${version.id} is cancelled, which cannot be undone`, "cancel")
    }
    const written = isEmpty(values, body) ? { version } : writeUpdate(context, version, { ...body, values })
    return isCancelling ? cancelInside(context, written.version) : written
  })

const isEmpty = (values: Body["values"], body: Body) => Object.keys(values).length === 0 && body.custom === null

const writeUpdate = (context: Context, version: Version, body: Body): Written => {
  const { resource } = version.table
  const own = context.rules.get(resource.path)?.update
  if (own !== undefined) return own(context, version, body)
  return { version: change(context, version, patchOf(resource, "update", body), body) }
}

const cancelInside = (context: Context, version: Version): Written => {
  if (version.cancelled) return { version }
  const own = context.rules.get(version.table.resource.path)?.cancel
  if (own !== undefined) return own(context, version)
  return { version: change(context, version, { cancel: true }) }
}

/** Cancels a record; a second time it returns the record unchanged (D-13). */
export const cancel = (context: Context, version: Version): Written =>
  context.store.transact(() => cancelInside(context, version))

/** An operation below a record, such as posting. */
export const special = (context: Context, version: Version, rule: SpecialRule, input: unknown): Written | Shown =>
  context.store.transact(() => rule.run(context, version, input))
