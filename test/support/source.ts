/**
 * A reference server in this process, a client of each of its companies, and a warehouse with the tables of some resources.
 * The server has no request limit, and the time of the machine also under a test clock.
 */
import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient, Transport } from "../../connectors/service-v2/client/index.ts"
import * as ReferenceServer from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { Budget } from "../../src/budget/Budget.ts"
import type { Company } from "../../src/sync/Company.ts"
import { engineDefault } from "../../src/sync/EngineSettings.ts"
import type { Table } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { layerWarehouse } from "./postgres.ts"
import { callsOf } from "./reference.ts"

/** Starts a server, which ends with the scope. */
export const makeSource = Effect.fnUntraced(function* (data: "empty" | "demo") {
  const starting = ReferenceServer.start({ port: 0, controlPort: 0, data })
  const isTest = "adjust" in (yield* Clock.Clock)
  const { baseUrl, controlUrl } = yield* isTest ? TestClock.withLive(starting) : starting
  const calls = callsOf(controlUrl)
  yield* Effect.promise(() => calls.control("PUT", "/limits", { requestsPerMinute: 1_000_000 }))
  return { baseUrl, ...calls }
})

export class Source extends Context.Service<Source, Effect.Success<ReturnType<typeof makeSource>>>()(
  "test/support/Source"
) {}

/** What a client of the server needs. */
export const layerClients = Layer.merge(Transport.layerUndici(), Budget.layerUnlimited)

/** All of it, with an empty server. */
export const layerSource = (tables: ReadonlyArray<Table>) =>
  Layer.effect(Source, makeSource("empty")).pipe(
    Layer.merge(Layer.effectDiscard(TablePlan.apply(tables))),
    Layer.provideMerge(layerWarehouse),
    Layer.merge(layerClients)
  )

type ClientOptions = Partial<Parameters<typeof ServiceClient.make>[0]>

/** A client of a company, with a token of its own. */
export const connect = Effect.fnUntraced(function* (
  source: Source["Service"],
  company: number,
  options: ClientOptions = {}
) {
  const { token, tokenid } = (yield* Effect.promise(() =>
    source.control("POST", "/tokens", { company, scopes: ["*"] })
  )) as { readonly token: string; readonly tokenid: number }
  const connector = yield* ServiceClient.make({
    baseUrl: source.baseUrl,
    token: Redacted.make(token),
    catalogue: serviceV2,
    ...options
  })
  return { token, tokenid, connector }
})

let companies = 100

/** A new company of {@link Source} whose requests are repeated once, and what its tests do at the source. */
export const makeCompany = Effect.fnUntraced(function* (
  tables: ReadonlyMap<string, Table>,
  options: ClientOptions = {}
) {
  const source = yield* Source
  const sql = yield* SqlClient.SqlClient
  const id = (companies += 1)
  const name = `company ${id}`
  const anew = connect(source, id, {
    pageSize: 100,
    requestTimeout: Duration.seconds(5),
    retry: { attemptsMax: 2, backoffBase: Duration.millis(5), backoffMax: Duration.millis(10) },
    ...options
  })
  const { token, tokenid, connector } = yield* anew
  const company: Company = {
    name,
    connector,
    tables: Effect.succeed(tables),
    engine: engineDefault,
    batchRecordsMax: 2_500,
    events: []
  }
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => source.control(method, path, body))
  return {
    id,
    name,
    token,
    sql,
    company,
    control,
    /** A client with another token. */
    anew,
    /** Writes records to the source. Returns them as stored. */
    put: (resource: string, records: ReadonlyArray<object>) =>
      Effect.map(
        control("POST", "/records", { company: id, resource, records }),
        (answer) => (answer as { readonly records: ReadonlyArray<Record<string, unknown>> }).records
      ),
    /** Every record of the source, as lines of JSON. */
    truth: (resource: string) => Effect.promise(() => source.lines(`/state?company=${id}&resource=${resource}`)),
    /** The paths of the read requests with its first token, with their queries. */
    reads: Effect.map(control("GET", "/requests"), (answer) =>
      (
        answer as {
          readonly requests: ReadonlyArray<{ readonly method: string; readonly path: string; readonly tokenid: number }>
        }
      ).requests.flatMap((one) => (one.tokenid === tokenid && one.method === "GET" ? [one.path] : []))
    ),
    faults: (...rules: ReadonlyArray<object>) => control("POST", "/faults", { rules, seed: 1 }),
    noFaults: control("DELETE", "/faults")
  }
})
