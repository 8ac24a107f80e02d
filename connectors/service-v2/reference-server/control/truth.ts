/**
 * The stored records and their history, for comparisons.
 *
 * Promise: a record has the same text as in a list. `/state` is ordered by id, includes cancelled records and shows the
 * time of the call. `/history` is ordered by commit, with a removal as `delete` and the last version.
 */
import type { Change } from "../store/Store.ts"
import { sharedCompany } from "../store/Store.ts"
import { printInstant } from "../time.ts"
import type { World } from "../World.ts"
import { tableOf } from "./records.ts"

/** Lines per chunk of an answer. */
const linesPerChunk = 500

function* chunked(lines: Iterable<string>): Generator<string> {
  let chunk: Array<string> = []
  for (const line of lines) {
    chunk.push(line)
    if (chunk.length < linesPerChunk) continue
    yield `${chunk.join("\n")}\n`
    chunk = []
  }
  if (chunk.length > 0) yield `${chunk.join("\n")}\n`
}

export interface Selection {
  readonly company: number
  readonly resource: string
  /** Adds the custom fields, to compare with a list that has them. */
  readonly include?: "custom_fields"
}

export const readState = (world: World, { company, resource, include }: Selection): Iterable<string> => {
  const table = tableOf(world, company, resource)
  const { renderer } = world
  const isIncluding = include !== undefined
  const versions = [...table.all()]
  const lines = function* () {
    for (const version of versions) {
      yield isIncluding
        ? renderer.renderWith(version, [["custom_fields", renderer.customFields(version)]])
        : renderer.render(version)
    }
  }
  return chunked(lines())
}

/** Every committed version; of one company and one resource where they are given. */
export const readHistory = (world: World, selection: Partial<Selection>): Iterable<string> => {
  const { company = null } = selection
  const resource = selection.resource === undefined ? null : tableOf(world, company ?? 1, selection.resource).resource
  const isMeant = ({ version: { table } }: Change) =>
    (company === null || table.company === company || table.company === sharedCompany) &&
    (resource === null || table.resource === resource)
  const { renderer, store } = world
  const changes = store.history.slice()
  const lines = function* () {
    for (const change of changes) {
      if (!isMeant(change)) continue
      const { seq, op, version, at } = change
      const head = { seq, op, company: version.table.company, resource: version.table.resource.path, id: version.id }
      const tail = `"version":${version.version},"at":"${printInstant(at)}","record":${renderer.render(version)}`
      yield `${JSON.stringify(head).slice(0, -1)},${tail}}`
    }
  }
  return chunked(lines())
}
