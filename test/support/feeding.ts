/** A company with a source in memory, whose syncs fill the change feed; and a receiver of its deliveries. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { codeOf } from "../../src/cli/Exit.ts"
import { sync } from "../../src/sync/Sync.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
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
export const makeReceiver: Effect.Effect<
  {
    readonly url: string
    readonly port: number
    readonly received: Array<Received>
    /** The changes that were accepted. */
    readonly accepted: Array<Data>
    answer: (received: Received) => Reply | null | Promise<Reply | null>
  },
  never,
  Scope.Scope
> = Effect.gen(function* () {
  const receiver = {
    url: "",
    port: 0,
    received: new Array<Received>(),
    accepted: new Array<Data>(),
    answer: (_received: Received): Reply | null | Promise<Reply | null> => ({ status: 204 })
  }
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const { headers } = request
      const one = { id: String(headers["webhook-id"]), headers, body: Buffer.concat(parts).toString("utf8") }
      receiver.received.push(one)
      void Promise.resolve(receiver.answer(one)).then((reply) => {
        if (reply === null) return request.socket.destroy()
        if (reply.status < 300) receiver.accepted.push(...dataOf(one))
        response.writeHead(reply.status, reply.headers)
        return reply.isOpen === true ? response.write("x") : response.end()
      })
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  receiver.port = (server.address() as AddressInfo).port
  receiver.url = `http://127.0.0.1:${receiver.port}/changes`
  return receiver
})
