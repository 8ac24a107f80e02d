/**
 * A reference server whose state is synced again and again, and the moments between the syncs: the time, the position in
 * the change feed, and the records that the server had then.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import { codeOf } from "../../../src/cli/Exit.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { server, type HttpReply } from "../../reference-server/support.ts"
import { record, scripted } from "../../support/tiny.ts"
import { booksOf, check, resourcesOf } from "./compare.ts"
import type { Books, Json } from "./figures.ts"

const models = readModels()
const resources = resourcesOf(models)

/** What the server had at a moment, and when that was for the warehouse. */
export interface Moment {
  readonly title: string
  readonly time: string
  readonly position: string
  readonly companies: ReadonlyArray<Books>
}

/** The companies of the server have these numbers plus `offset` in the warehouse, so that two servers never mix. */
const companyNumbers = [1, 2]

export const makeHistory = (seed: number, offset: number) => {
  const served = server({ data: "demo", seed })
  const state = (company: number, resource: string) =>
    served
      .control("GET", `/state?company=${company - offset}&resource=${resource}`)
      .text.split("\n")
      .filter((line) => line !== "")
  const books = (company: number) => booksOf(company + offset, resources, state)

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
  /** The first active record of company 1 that satisfies the condition. */
  const one = (resource: string, fits: (record: Json) => boolean = () => true): Json => {
    const match = books(1)
      .of(resource)
      .find((candidate) => candidate["cancel"] !== true && fits(candidate))
    if (match === undefined) throw new Error(`seed ${seed} has no suitable record of ${resource}`)
    return match
  }

  /** A source that lists the state of one company. */
  const connectorOf = (companyId: number) =>
    scripted(BigInt(companyId), ({ resource }) => ({
      records: state(companyId, resource.path).map((line) => {
        const values = JSON.parse(line) as Json
        const texts = Object.entries(values).map(([name, value]) => [
          name,
          value === null || typeof value === "string" ? value : JSON.stringify(value)
        ])
        return record(serviceV2.resources.get(resource.path)!, {
          ...Object.fromEntries(texts),
          id: String(values["id"])
        })
      }),
      rejected: [],
      syncedThrough: resource.modifiedSince ? "2026-03-16T09:00:00Z" : null,
      next: null
    })).connector

  /** Syncs all companies, and answers the moment after that. */
  const synced = Effect.fnUntraced(function* (title: string) {
    const report = yield* sync({
      companies: companyNumbers.map((number) => ({
        name: `company ${number + offset}`,
        connector: { ...connectorOf(number + offset), catalogue: serviceV2 },
        resources: resources.map((path) => serviceV2.resources.get(path)!)
      })),
      datasets: datasetsDefault,
      models,
      concurrency: 4,
      batchRecordsMax: 5_000,
      mode: { full: true, acceptDeletions: true }
    })
    const failures = report.companies.flatMap(({ outcomes }) =>
      outcomes.flatMap(({ resource, failure }) => (failure === null ? [] : [`${resource}: ${failure.message}`]))
    )
    assert.deepStrictEqual(failures, [], title)
    assert.strictEqual(codeOf(report), 0, title)
    yield* ChangeFeed.order
    const sql = yield* SqlClient.SqlClient
    const [now] = yield* sql<{ time: string }>`select clock_timestamp()::text as time`
    const position = ChangeFeed.textOf(yield* ChangeFeed.end)
    const companies = companyNumbers.map((number) => books(number))
    return { title, time: now!.time, position, companies } satisfies Moment
  })

  return { call, put, remove, one, synced }
}

export type History = ReturnType<typeof makeHistory>

/** Compares the views of the current records on these days, and the as-of views at every moment, by these settings. */
export const compareMoments = Effect.fnUntraced(function* (
  moments: ReadonlyArray<Moment>,
  days: ReadonlyArray<string>,
  isMeant: (model: string) => boolean,
  settingsOf: (moment: Moment) => ReadonlyArray<string>
) {
  const checked = models.filter(({ name }) => isMeant(name))
  const last = moments.at(-1)!
  for (const day of days) {
    const { wrong } = yield* check(checked, "erp_models", last.companies, day)
    assert.deepStrictEqual(wrong.slice(0, 5), [], `${day}: ${wrong.length} rows`)
  }
  const rows: Array<Readonly<Record<string, number>>> = []
  for (const moment of moments) {
    const { title, time, companies } = moment
    for (const setting of settingsOf(moment)) {
      const found = yield* check(checked, "erp_models_asof", companies, time.slice(0, 10), setting)
      assert.deepStrictEqual(found.wrong.slice(0, 5), [], `${title}, as of ${setting}: ${found.wrong.length} rows`)
      rows.push(found.rows)
    }
  }
  return rows
})
