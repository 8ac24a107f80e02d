/**
 * A process that uses the embedded Postgres: `node embedded-user.ts <root> [port] [durable]`.
 *
 * Prints one JSON line when it is connected, and ends when its input ends or on SIGTERM. A kill with -9 runs no
 * finalizers.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"

const [root, port, durable] = process.argv.slice(2)

const inputEnded = Effect.callback<void>((resume) => {
  process.stdin.resume()
  process.stdin.once("end", () => resume(Effect.void))
})

Effect.gen(function* () {
  const server = yield* start({
    root,
    durable: durable !== undefined,
    ...(port === undefined ? {} : { port: Number(port) })
  })
  const { endpoint, adopted } = server
  console.log(JSON.stringify({ pid: server.pid(), port: endpoint.port, adopted }))
  yield* inputEnded
}).pipe(Effect.scoped, NodeRuntime.runMain)
