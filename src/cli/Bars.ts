/**
 * Progress for people: bars on a terminal, plain lines elsewhere, nothing with `--json`.
 *
 * Promise: progress goes to standard error only, and the terminal is left as it was found.
 */
import cliProgress from "cli-progress"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Outcome } from "../pipeline/Outcome.ts"
import { Progress, type ProgressShape } from "../pipeline/Progress.ts"
import * as Output from "./Output.ts"

export type ProgressStyle = "bars" | "lines" | "none"

/** Bars need a terminal that a person looks at. */
export const styleOf = (options: { readonly json: boolean }): ProgressStyle =>
  options.json ? "none" : process.stderr.isTTY && process.env["CI"] === undefined ? "bars" : "lines"

const keyOf = (run: { readonly companyId: bigint; readonly resource: string }) => `${run.companyId} ${run.resource}`

/** How a run ended, in one line. */
export const outcomeLine = (outcome: Outcome): string => {
  const { totals } = outcome
  const changes = [
    totals.inserted > 0 ? `${Output.count(totals.inserted)} new` : "",
    totals.updated > 0 ? `${Output.count(totals.updated)} changed` : "",
    totals.deleted > 0 ? `${Output.count(totals.deleted)} deleted` : "",
    totals.quarantined > 0 ? `${Output.count(totals.quarantined)} in quarantine` : ""
  ].filter((part) => part !== "")
  const told =
    outcome.failure === null
      ? `${changes.length === 0 ? "nothing new" : changes.join(", ")} (${Output.duration(outcome.durationMs)})`
      : outcome.status === "skipped"
        ? "skipped: the company's token is not accepted"
        : `failed: ${outcome.failure.message}. What to do: ${outcome.failure.remedy}`
  const doubted =
    outcome.disbelieved === null
      ? ""
      : `; ${outcome.disbelieved.gone} of ${outcome.disbelieved.live} rows were missing at the source, which is not believed: if it is right, run again with --full --accept-deletions`
  return `${outcome.resource}: ${told}${doubted}`
}

/** A resource in which nothing happened is not worth a line; the summary counts it. */
const isQuiet = ({ status, totals }: Outcome) =>
  status === "skipped" || (status === "done" && totals.inserted + totals.updated + totals.deleted === 0)

const lines: ProgressShape = {
  began: () => Effect.void,
  landed: () => Effect.void,
  ended: (outcome) =>
    isQuiet(outcome) ? Effect.void : Output.note(`  company ${outcome.companyId} ${outcomeLine(outcome)}`),
  note: (text) => Output.note(`  ${text}`)
}

/** A bar for each run at work; a run that has ended becomes a line above them, so that any terminal is tall enough. */
const makeBars = Effect.gen(function* () {
  const drawn = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new cliProgress.MultiBar(
          {
            format: "  {name} {bar} {records} records  {told}",
            barsize: 18,
            barCompleteChar: "█",
            barIncompleteChar: "░",
            hideCursor: true,
            clearOnComplete: true,
            gracefulExit: false,
            stream: process.stderr,
            forceRedraw: true,
            linewrap: false,
            fps: 12
          },
          cliProgress.Presets.shades_classic
        )
    ),
    (bars) =>
      Effect.sync(() => {
        bars.update()
        bars.stop()
      })
  )
  const known = new Map<string, cliProgress.SingleBar>()
  const line = (text: string) => Effect.sync(() => drawn.log(`  ${text}\n`))
  return {
    began: (run) =>
      Effect.sync(() => {
        const name = `company ${run.companyId} ${run.resource}`.padEnd(34)
        const told = run.resumed ? "going on" : ""
        const bar = known.get(keyOf(run)) ?? drawn.create(1, 0, { name, records: "0".padStart(9), told })
        known.set(keyOf(run), bar)
      }),
    // How many pages are to come is not known beforehand: the bar nears its end and reaches it with the last page.
    landed: (run, totals) =>
      Effect.sync(() =>
        known.get(keyOf(run))?.update(1 - 1 / (1 + totals.pages), { records: Output.count(totals.records).padStart(9) })
      ),
    ended: (outcome) =>
      Effect.suspend(() => {
        const bar = known.get(keyOf(outcome))
        known.delete(keyOf(outcome))
        const removed = bar === undefined ? Effect.void : Effect.sync(() => drawn.remove(bar))
        return isQuiet(outcome)
          ? removed
          : Effect.andThen(line(`company ${outcome.companyId} ${outcomeLine(outcome)}`), removed)
      }),
    note: line
  } satisfies ProgressShape
})

/** Progress in a style, for as long as the scope. */
export const layer = (style: ProgressStyle): Layer.Layer<never> => {
  switch (style) {
    case "bars":
      return Layer.effect(Progress, makeBars)
    case "lines":
      return Layer.succeed(Progress, lines)
    case "none":
      return Layer.empty
  }
}
