/** The rules about the records: those of the connector and those of the configuration. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Invariant } from "../invariants/Invariant.ts"
import { evaluateOnce } from "../invariants/Evaluate.ts"
import * as Invariants from "../status/Invariants.ts"
import { unreadReason } from "./CompanyResources.ts"
import * as Models from "./Models.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

type RuleSettings = Pick<Configuration, "invariants" | "resources" | "excluded">

/**
 * The rules that can be evaluated, and why each of the others is left out: it reads a field with a privacy rule, or a
 * resource that no company reads. A configured one replaces the connector's of the same name.
 */
export const readable = Effect.fnUntraced(function* (settings: RuleSettings) {
  const { invariants: configured } = settings
  const own = yield* (yield* Source).invariants
  const all: ReadonlyArray<Invariant> = [
    ...own.filter(({ name }) => !configured.some((one) => one.name === name)),
    ...configured
  ]
  const { kept, leftOut } = yield* Models.readable(settings, all)
  const unread = kept.flatMap(({ name, resources }) => {
    const reason = resources.map((path) => unreadReason([settings], path)).find((one) => one !== null)
    return reason === undefined ? [] : [{ name, reason, remedy: "take the resource out of exclude_resources" }]
  })
  return {
    kept: kept.filter(({ name }) => !unread.some((one) => one.name === name)),
    leftOut: [...leftOut, ...unread]
  }
})

/** The rules that can be evaluated. */
export const of = (settings: RuleSettings) => Effect.map(readable(settings), ({ kept }) => kept)

/** Invariants that a message names. */
const leftOutMax = 8

/** The rules over what a company reads. A sentence says what of these resources it does not read. */
export const ofCompany = Effect.fnUntraced(function* (
  settings: RuleSettings & Pick<Configuration, "companies">,
  name: string,
  paths: Iterable<string>,
  say: (sentence: string) => Effect.Effect<void>
) {
  const company = settings.companies.filter((one) => one.name === name)
  const unread = [...paths].flatMap((path) => unreadReason(company, path) ?? [])
  const isRead = ({ resources }: Invariant) => resources.every((path) => unreadReason(company, path) === null)
  const rules = yield* of(settings)
  const left = rules.flatMap((rule) => (isRead(rule) ? [] : [rule.name]))
  const more = unread.length === 1 ? "" : `, and ${Output.count(unread.length - 1)} more`
  const without = left.length === 0 ? "" : `; invariants that are left out with it: ${Output.firstOf(left, leftOutMax)}`
  if (unread[0] !== undefined) yield* say(`${unread[0]}${more}${without}`)
  return rules.filter(isRead)
})

/** Evaluates the rules that changes concern, and reports those that do not hold. A failure is a note, and does not stop the sync. */
export const evaluate = Effect.fnUntraced(function* (settings: RuleSettings & Pick<Configuration, "datasets">) {
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
  yield* report.pipe(Effect.catch((error) => Output.note(`tributary: invariants were not evaluated: ${error.message}`)))
})
