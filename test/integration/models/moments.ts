/**
 * A reference server of demo data whose records change and are synced again and again, and the moments between the syncs:
 * the time, the position in the change feed, and the records that the server had then.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as Decode from "../../../connectors/service-v2/client/Decode.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import type { HttpReply } from "../../reference-server/support.ts"
import { booksOf, demoServer } from "../../support/demo.ts"
import { scripted } from "../../support/tiny.ts"
import { flowing } from "../../support/until.ts"
import { check, resourcesOf } from "./compare.ts"
import type { Json } from "./figures.ts"
import { passMinute, sql } from "../../support/postgres.ts"

const models = readModels()
export const resources = resourcesOf(models)
const decoders = new Map(resources.map((path) => [path, Decode.make(serviceV2.resources.get(path)!)]))

/** What the server had at a moment, and when that was for the warehouse. */
export interface Moment {
  readonly title: string
  readonly time: string
  readonly position: string
  readonly companies: ReadonlyArray<ReturnType<typeof booksOf>>
}

/** The companies 1 and 2 of the server have these numbers plus `offset` in the warehouse, so that two servers never mix. */
const companyNumbers = [1, 2]

export const makeDemo = (seed: number, offset = seed * 10) => {
  const { served, linesOf } = demoServer(seed)
  const books = () =>
    companyNumbers.map((company) => booksOf(company + offset, resources, (_, resource) => linesOf(company, resource)))

  const call = (method: string, path: string, body?: unknown): Json => {
    const response: HttpReply = served.call(method, path, body)
    assert.isBelow(response.status, 300, `${method} ${path}: ${response.text}`)
    return response.body
  }
  const put = (resource: string, records: ReadonlyArray<Json>, company = 1): ReadonlyArray<Json> => {
    const response = served.control("POST", "/records", { company, resource, records })
    assert.strictEqual(response.status, 200, response.text)
    return response.body["records"] as ReadonlyArray<Json>
  }
  const remove = (resource: string, id: unknown) => {
    const response = served.control("POST", "/remove", { company: 1, resource, id })
    assert.isBelow(response.status, 300, response.text)
  }
  const all = (resource: string) => linesOf(1, resource).map((line) => JSON.parse(line) as Json)
  /** The first active record of company 1 that satisfies the condition. */
  const one = (resource: string, fits: (record: Json) => boolean = () => true): Json => {
    const match = all(resource).find((candidate) => candidate["cancel"] !== true && fits(candidate))
    if (match === undefined) throw new Error(`seed ${seed} has no suitable record of ${resource}`)
    return match
  }

  const connectorOf = (company: number) => ({
    ...scripted(BigInt(company + offset), ({ resource: { path } }) => {
      const page = decoders.get(path)!.list(`[${linesOf(company, path).join(",")}]`, 0)
      assert.deepStrictEqual(page.rejected, [], path)
      return { ...page, syncedThrough: null, next: null }
    }).connector,
    catalogue: serviceV2
  })
  const connectors = new Map(companyNumbers.map((company) => [company, connectorOf(company)]))
  const landed = new Map<string, string>()

  /** Fully reads the resources that changed, and answers the moment after that. Only the owner may move the clock on. */
  const synced = Effect.fnUntraced(function* (title: string, by: "owner" | "loader" = "owner") {
    const pass = by === "owner" ? Effect.asVoid(passMinute) : Effect.void
    yield* pass
    const companies = companyNumbers.map((company) => {
      const changed = resources.filter((path) => {
        const [place, lines] = [`${company} ${path}`, linesOf(company, path).join()]
        const isChanged = landed.get(place) !== lines
        landed.set(place, lines)
        return isChanged
      })
      return {
        name: `company ${company + offset}`,
        connector: connectors.get(company)!,
        resources: changed.map((path) => serviceV2.resources.get(path)!)
      }
    })
    const report = yield* flowing(
      sync({
        companies: companies.filter((company) => company.resources.length > 0),
        datasets: datasetsDefault,
        models,
        concurrency: 4,
        batchRecordsMax: 5_000,
        mode: { full: true, acceptDeletions: true }
      })
    )
    const failures = report.companies.flatMap(({ failure, outcomes }) => [
      failure,
      ...outcomes.map((one) => one.failure)
    ])
    assert.deepStrictEqual(
      failures.flatMap((failure) => (failure === null ? [] : [failure.message])),
      [],
      title
    )
    // As autovacuum does: without statistics, plans are chosen by chance.
    const tables = companies.flatMap((company) => company.resources.map((resource) => tableOf(resource)))
    for (const table of new Set(tables.flatMap((table) => [table.current, table.superseded])))
      yield* sql.unsafe(`analyze ${table}`)
    yield* ChangeFeed.order
    yield* pass
    const [now] = yield* sql<{ time: string }>`select tributary.now()::text as time`
    const position = ChangeFeed.textOf(yield* ChangeFeed.end)
    return { title, time: now!.time, position, companies: books() } satisfies Moment
  })

  return { books, call, put, remove, all, one, synced }
}

export type Demo = ReturnType<typeof makeDemo>

/** Compares the views of the current records on these days, and the as-of views at every moment, by these settings. */
export const compareMoments = Effect.fnUntraced(function* (
  moments: ReadonlyArray<Moment>,
  days: ReadonlyArray<string>,
  settingsOf: (moment: Moment) => ReadonlyArray<string>
) {
  const last = moments.at(-1)!
  for (const day of days) {
    const { wrong } = yield* check(models, "erp_models", last.companies, day)
    assert.deepStrictEqual(wrong.slice(0, 5), [], `${day}: ${wrong.length} rows`)
  }
  const rows: Array<Readonly<Record<string, number>>> = []
  for (const moment of moments) {
    const { title, time, companies } = moment
    for (const setting of settingsOf(moment)) {
      const found = yield* check(models, "erp_models_asof", companies, time.slice(0, 10), setting)
      assert.deepStrictEqual(found.wrong.slice(0, 5), [], `${title}, as of ${setting}: ${found.wrong.length} rows`)
      rows.push(found.rows)
    }
  }
  return rows
})
