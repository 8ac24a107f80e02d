/** Sessions of assistants over HTTP, at the real server under a test clock. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Layer, Semaphore } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { Capabilities, unreachable } from "../../src/mcp/Capabilities.ts"
import * as Http from "../../src/mcp/Http.ts"
import { idleMsMax, sessionsMax } from "../../src/mcp/HttpSessions.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { test } from "../support/suite.ts"

/** A server without a warehouse. */
const capabilities = Layer.succeed(Capabilities, {
  version: "1.0.0",
  datasets: datasetsDefault,
  warehouse: Effect.fail(unreachable),
  plan: () => Effect.fail(unreachable),
  dryRun: () => Effect.fail(unreachable),
  slots: Semaphore.makeUnsafe(1)
})

const protocolVersion = "2025-11-25"

const serving = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const { handler } = yield* Effect.acquireRelease(
    Effect.sync(() => Http.serve(capabilities, clock)),
    ({ dispose }) => Effect.promise(dispose)
  )
  const post = (body: object, session?: string) =>
    Effect.promise(() =>
      handler(
        new Request("http://127.0.0.1/mcp", {
          method: "POST",
          headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...(session === undefined ? {} : { "mcp-session-id": session, "mcp-protocol-version": protocolVersion })
          },
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body })
        })
      )
    )
  return {
    begin: Effect.map(
      post({
        method: "initialize",
        params: { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } }
      }),
      ({ headers }) => headers.get("mcp-session-id")!
    ),
    /** The status of a request of the session. */
    status: (session: string) => Effect.map(post({ method: "tools/list", params: {} }, session), ({ status }) => status)
  }
})

describe("a session over HTTP", () => {
  test("ends after its idle time, and not while it is used", function* () {
    const { begin, status } = yield* serving
    const idle = yield* begin
    const used = yield* begin
    assert.notStrictEqual(idle, used)
    assert.strictEqual(yield* status(idle), 200)
    yield* TestClock.adjust(idleMsMax - 1)
    assert.strictEqual(yield* status(used), 200)
    yield* TestClock.adjust(1)
    assert.strictEqual(yield* status(idle), 404)
    assert.strictEqual(yield* status(used), 200)
    assert.strictEqual(yield* status("never-begun"), 404)
  })

  test("ends when more than the maximum have sent a request since", function* () {
    const { begin, status } = yield* serving
    const [first, second, third] = [yield* begin, yield* begin, yield* begin]
    // The first one becomes the one that was used last.
    assert.strictEqual(yield* status(first), 200)
    for (let count = 3; count < sessionsMax; count += 1) yield* begin
    assert.strictEqual(yield* status(second), 200)
    yield* begin
    assert.strictEqual(yield* status(third), 404)
    assert.strictEqual(yield* status(first), 200)
    assert.strictEqual(yield* status(second), 200)
  })
})
