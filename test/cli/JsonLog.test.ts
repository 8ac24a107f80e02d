/** The JSON log: one object per line, without secrets. */
import { assert, describe } from "@effect/vitest"
import { Cause, Effect, Logger, Redacted, Tracer } from "effect"
import * as Output from "../../src/cli/Output.ts"
import { test } from "../support/suite.ts"
import { cellsOf } from "../support/rows.ts"

/** The lines that the effect writes to standard error. */
const stderrOf = <A>(effect: Effect.Effect<A>) =>
  Effect.suspend(() => {
    const { stderr } = process
    const write = stderr.write.bind(stderr)
    let text = ""
    stderr.write = (chunk: Uint8Array | string, ...rest: ReadonlyArray<unknown>) => {
      text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()
      const callback = rest.find((one) => typeof one === "function")
      if (typeof callback === "function") callback()
      return true
    }
    return effect.pipe(
      Effect.ensuring(
        Effect.sync(() => {
          stderr.write = write
        })
      ),
      Effect.map(() => text)
    )
  }).pipe(
    Effect.provide(Logger.layer([Output.jsonLogger])),
    Effect.provideService(Output.LogFormat, "json"),
    Effect.map((text) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    )
  )

const secret = Redacted.make("canary-7f3-token")

describe("the JSON log", () => {
  test("writes each entry as one object per line with secrets redacted", function* () {
    const entries = yield* stderrOf(
      Effect.gen(function* () {
        yield* Effect.logWarning("two\nlines", { run: 12n, token: secret })
        yield* Effect.logError("it failed", Cause.fail(new Error("no answer"))).pipe(
          Effect.annotateLogs({ company: "north", token: secret })
        )
        yield* Output.note("  printed beside the result  ")
        yield* Output.note("tributary: the warehouse is away", "Error")
      })
    )
    assert.deepStrictEqual(cellsOf(entries, "level", "message"), [
      ["WARN", 'two\nlines {"run":12,"token":"<redacted>"}'],
      ["ERROR", "it failed"],
      ["INFO", "printed beside the result"],
      ["ERROR", "tributary: the warehouse is away"]
    ])
    assert.deepStrictEqual(entries[1]!["annotations"], { company: "north", token: "<redacted>" })
    assert.include(String(entries[1]!["cause"]), "no answer")
    for (const entry of entries) assert.strictEqual(String(entry["time"]).length, 24)
    assert.notInclude(JSON.stringify(entries), "canary")
  })

  test("includes trace and span ids only while traces are exported", function* () {
    const log = Effect.withSpan(Effect.logInfo("within"), "work")
    assert.notProperty((yield* stderrOf(log))[0], "trace_id")
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = Tracer.nativeTracer.span(options)
        spans.push(span)
        return span
      }
    })
    const [traced] = yield* stderrOf(Effect.withTracer(log, tracer))
    assert.deepStrictEqual([traced!["trace_id"], traced!["span_id"]], [spans[0]!.traceId, spans[0]!.spanId])
  })
})
