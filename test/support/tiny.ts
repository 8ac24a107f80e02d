/** A tiny catalogue and a source in memory, for testing the engine without a real API. */
import * as TestClock from "effect/testing/TestClock"
import { traits } from "../../connectors/service-v2/catalogue/traits.ts"
import { Clock, Effect } from "effect"
import { catalogue, type Catalogue } from "../../src/catalogue/Catalogue.ts"
import {
  boolean,
  cancel,
  date,
  id,
  integer,
  lastchangedate,
  list,
  money,
  qty,
  string,
  text,
  timestamp
} from "../../connectors/service-v2/catalogue/fields.ts"
import { resource, type Resource, type ResourceSpec } from "../../connectors/service-v2/catalogue/resource.ts"
import type { ConnectorShape, Page, PageRequest, Rejected, SourceRecord } from "../../src/connector/Connector.ts"
import * as MonotonicClock from "../../src/time/MonotonicClock.ts"
import { SourceError, type SourceReason } from "../../src/connector/SourceError.ts"

/** A resource of the shop. */
export const shopResource = (
  path: string,
  operations: string,
  fields: ResourceSpec["fields"],
  more: Partial<ResourceSpec> = {}
): Resource => resource({ path, area: "shop", purpose: path, basis: "documented", operations, fields, ...more })

/** The catalogue of a shop with these resources. */
export const shopOf = (...resources: ReadonlyArray<Resource>): Catalogue =>
  catalogue({
    name: "tiny",
    version: "1",
    areas: [{ name: "shop", covers: "everything" }],
    traits,
    features: [],
    errorCodes: [],
    resources
  })

const numbers = [money("price"), qty("weight"), integer("rank"), boolean("flag")]
const values = [string("name", 255), ...numbers, date("day"), timestamp("seen"), text("memo")]

/** A resource with modifiedsince. */
export const things = shopResource("things", "L R", [id(), values, cancel(), lastchangedate()], { modifiedSince: true })

/** The same with a list, and without a cancel flag. */
export const gauges = shopResource("gauges", "L R", [id(), values, list("parts", [integer("no")]), lastchangedate()], {
  modifiedSince: true
})

/** A resource that must be read in full each time. */
export const plain = shopResource("plains", "L", [id(), string("name", 50), money("amount")])

export const tiny = shopOf(things, plain)

export type Values = Readonly<Record<string, string | null | undefined>>

/**
 * A record of a resource from texts by field. An absent field is empty. A field that is `undefined` is missing in the
 * record.
 */
export const record = (
  resource: Resource,
  values: Values & { readonly id: string },
  more: { readonly extra?: string; readonly customFields?: string } = {}
): SourceRecord => {
  const columns = resource.fields.map((field) => (field.name in values ? values[field.name] : null))
  return {
    id: values.id,
    columns,
    partial: columns.includes(undefined),
    customFields: more.customFields ?? null,
    extra: more.extra ?? null
  }
}

export interface ScriptedPage {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected?: ReadonlyArray<Rejected>
  readonly syncedThrough?: string | null
}

/** Answers one request of a scan. */
export type Script = (request: PageRequest) => ScriptedPage & { readonly next: string | null }

export interface ScriptedSource {
  readonly connector: ConnectorShape
  readonly requests: Array<{ readonly resource: string; readonly since: string | null; readonly token: string | null }>
  script: Script
  /** When reads begin, in milliseconds on the monotonic clock. It grows by at least one with each read. */
  now: number
}

/** A read takes a millisecond under a test clock, so that reads of all sources have an order. */
const passMillisecond = Clock.clockWith((clock) => ("adjust" in clock ? TestClock.adjust(1) : Effect.void))

/** A source whose pages a test writes. */
export const scripted = (companyId: bigint, script: Script): ScriptedSource => {
  const source: ScriptedSource = {
    requests: [],
    script,
    now: 0,
    connector: {
      catalogue: tiny,
      identify: Effect.succeed({ companyId, sourceNumber: companyId, user: null, scopes: null, features: null }),
      page: (request) =>
        Effect.andThen(
          passMillisecond,
          Clock.clockWith((clock) => {
            source.requests.push({ resource: request.resource.path, since: request.since, token: request.token })
            const beganAt = (source.now = Math.max(source.now + 1, MonotonicClock.nowMs(clock)))
            const page = source.script(request)
            return Effect.succeed({
              records: page.records,
              rejected: page.rejected ?? [],
              next: page.next,
              syncedThrough: page.syncedThrough ?? null,
              beganAt,
              source: `GET /${request.resource.path} [request r${source.requests.length}]`,
              bytes: 100,
              attempts: 1
            } satisfies Page)
          })
        ).pipe(
          Effect.catchDefect((defect) => (defect instanceof SourceError ? Effect.fail(defect) : Effect.die(defect)))
        ),
      rawPage: () => Effect.die("not scripted"),
      get: () => Effect.die("not scripted"),
      write: () => Effect.die("not scripted"),
      usage: Effect.succeed({ requests: 0, retries: 0, rateLimited: 0, bytes: 0 })
    }
  }
  return source
}

/** An error for a script to throw. */
export const failing = (reason: SourceReason, attempts = 1): SourceError =>
  new SourceError({ reason, request: { method: "GET", path: "/things", requestId: "r0", attempts } })

/** Pages of fixed records, marked `p1`, `p2`, … */
export const pages =
  (...all: ReadonlyArray<ScriptedPage>): Script =>
  ({ token }) => {
    const index = token === null ? 0 : Number(token.slice(1))
    return { ...all[index]!, next: index + 1 < all.length ? `p${index + 1}` : null }
  }

/** A source whose things a test changes. It lists the changes since the cursor, or everything. */
export const changing = (companyId: bigint) => {
  const rows = new Map<number, { readonly name: string; readonly second: number }>()
  const rejected: Array<Rejected> = []
  let second = 0
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()
  const source = scripted(companyId, ({ since }) => ({
    records: [...rows]
      .filter((row) => since === null || at(row[1].second) >= since)
      .map(([id, row]) =>
        record(things, { id: String(id), name: row.name, lastchangedate: at(row.second) }, { customFields: "{}" })
      ),
    rejected,
    syncedThrough: at((second += 1_000)),
    next: null
  }))
  const put = (id: number, name: string) => rows.set(id, { name, second: (second += 1_000) })
  return { rows, rejected, put, source }
}
