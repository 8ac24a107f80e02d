/**
 * A process that sends changes to the endpoints of a warehouse, as `serve` does. It ends with its input.
 *
 * `--database URL` · `--key KEY`, the key of the signing secrets · `--id NAME`, the name of the process
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Redacted } from "effect"
import * as Sender from "../../src/delivery/Sender.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { runForever } from "../../src/processes/Supervisor.ts"

const { values } = parseArgs({
  options: { database: { type: "string" }, key: { type: "string" }, id: { type: "string" } }
})
process.stdin.once("end", () => process.exit(0)).resume()

const keys = { key: Redacted.make(values.key!), file: new Map() }
runForever("sending changes", Sender.run({ processId: values.id!, keys, proxies: null, routes: new Map() })).pipe(
  Effect.provide(Layer.provideMerge(sqlLayer, Database.layerUrl(Redacted.make(values.database!)))),
  NodeRuntime.runMain
)
