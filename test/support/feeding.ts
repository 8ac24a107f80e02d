/** A company with a source in memory, whose syncs fill the change feed; and a receiver of its deliveries. */
import type { IncomingHttpHeaders } from "node:http"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { codeOf } from "../../src/cli/Exit.ts"
import { type Definition, everything } from "../../src/delivery/Endpoint.ts"
import { sync } from "../../src/sync/Sync.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { passMinute } from "./postgres.ts"
import { recording } from "./recording.ts"
import { record, scripted, things, tiny } from "./tiny.ts"

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

/** Its source lists the changes since the cursor, or everything. */
export const makeCompany = (companyId: bigint) => {
  const rows = new Map<number, { readonly name: string; readonly price: string; readonly second: number }>()
  let second = 0
  const { connector } = scripted(companyId, ({ since }) => ({
    records: [...rows]
      .filter((row) => since === null || at(row[1].second) >= since)
      .map(([id, row]) =>
        record(
          things,
          { id: String(id), name: row.name, price: row.price, lastchangedate: at(row.second) },
          { customFields: "{}" }
        )
      ),
    rejected: [],
    syncedThrough: at((second += 1_000)),
    next: null
  }))
  return {
    companyId,
    rows,
    put: (id: number, name: string, price = "1.10") => rows.set(id, { name, price, second: (second += 1_000) }),
    sync: Effect.fnUntraced(function* (full = false, backfill = false) {
      const report = yield* sync({
        companies: [{ name: `c${companyId}`, connector: { ...connector, catalogue: tiny }, resources: [things] }],
        datasets: datasetsDefault,
        concurrency: 1,
        batchRecordsMax: 5_000,
        mode: backfill ? { backfill: { since: null, until: null } } : { full }
      })
      assert.strictEqual(codeOf(report), 0, String(report.companies[0]!.outcomes[0]!.failure?.message))
    })
  }
}

/** The same, where each sync is a minute after everything before it. */
export const makeTimedCompany = (companyId: bigint) => {
  const company = makeCompany(companyId)
  return {
    ...company,
    sync: (...mode: Parameters<typeof company.sync>) => Effect.andThen(passMinute, company.sync(...mode))
  }
}

/** An endpoint of a receiver on this machine that gets every change. */
export const definitionOf = (name: string, url: string): Definition => ({
  name,
  url,
  ...everything,
  batchMax: 1,
  allowPrivate: true,
  retryHours: 72
})

/** A request that a receiver got. */
export interface Received {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Data {
  readonly change: string
  readonly position: number
  readonly company: string | null
  readonly id: number | null
  readonly version: number
  readonly op: string
  readonly before: { readonly name: string } | null
  readonly after: { readonly name: string } | null
}

/** The changes of a message. */
export const dataOf = ({ body }: Received): ReadonlyArray<Data> => {
  const { data } = JSON.parse(body) as { readonly data: Data | ReadonlyArray<Data> }
  return Array.isArray(data) ? (data as ReadonlyArray<Data>) : [data as Data]
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** The body does not end. */
  readonly isOpen?: boolean
}

/** An HTTP server that keeps what it gets. Its answers can be replaced; `null` closes the connection without one. */
export const makeReceiver = Effect.gen(function* () {
  const receiver = {
    url: "",
    port: 0,
    received: new Array<Received>(),
    /** The changes that were accepted. */
    accepted: new Array<Data>(),
    answer: (_received: Received): Reply | null | Promise<Reply | null> => ({ status: 204 })
  }
  const { port, url } = yield* recording(({ headers, socket }, body, response) => {
    const one = { id: String(headers["webhook-id"]), headers, body: body.toString("utf8") }
    receiver.received.push(one)
    void Promise.resolve(receiver.answer(one)).then((reply) => {
      if (reply === null) return socket.destroy()
      if (reply.status < 300) receiver.accepted.push(...dataOf(one))
      response.writeHead(reply.status, reply.headers)
      return reply.isOpen === true ? response.write("x") : response.end()
    })
  })
  return Object.assign(receiver, { port, url: `${url}/changes` })
})
