/** The rules about the records: those of the connector and those of the configuration. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Invariant } from "../invariants/Invariant.ts"
import { evaluateOnce } from "../invariants/Evaluate.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Invariants from "../status/Invariants.ts"
import * as Models from "./Models.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

/**
 * All rules without those that read a field with a privacy rule. A configured one replaces the connector's of the same
 * name.
 */
export const of = Effect.fnUntraced(function* (
  settings: Pick<Configuration, "invariants" | "resources">
): Effect.fn.Return<ReadonlyArray<Invariant>, never, Source> {
  const { invariants: configured } = settings
  const own = yield* (yield* Source).invariants
  const all = [...own.filter(({ name }) => !configured.some((one) => one.name === name)), ...configured]
  return (yield* Models.readable(settings, all)).kept
})

/** Evaluates the rules that changes concern, and reports those that do not hold. A failure is a note, and does not stop the sync. */
export const evaluate = Effect.fnUntraced(function* (
  settings: Pick<Configuration, "invariants" | "datasets" | "resources">
) {
  const invariants = yield* of(settings)
  const report = Effect.gen(function* () {
    const count = yield* evaluateOnce({ invariants, current: settings.datasets.current }, { isNow: true })
    if (count === 0) return
    for (const { name, open, failed, error, statement } of yield* Invariants.summary(null)) {
      if (open > 0) {
        yield* Output.note(
          `tributary: ${Output.plural(open, "record violates", "records violate")} ${name}: ${statement} See them with ${Invariants.listCommand(name)}`
        )
      }
      if (failed > 0) yield* Output.note(`tributary: the invariant ${name} cannot be evaluated: ${error ?? ""}`)
    }
  })
  yield* report.pipe(
    Effect.catch((error) =>
      Output.note(
        `tributary: invariants were not evaluated: ${DatabaseError.from("evaluate invariants")(error).message}`
      )
    )
  )
})
