/**
 * The progress display of every command: bars on a terminal, plain lines elsewhere, nothing with `--json`.
 *
 * Promise: progress goes to standard error only, and the terminal is left as it was found.
 */
import type { MultiBar } from "cli-progress"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Output from "./Output.ts"

/** `quiet`: remarks only. */
export type ProgressStyle = "bars" | "lines" | "quiet" | "none"

/** Bars need an interactive terminal. Elsewhere a command that has `--verbose` prints lines with it only. */
export const styleOf = (options: { readonly json: boolean; readonly verbose?: boolean }): ProgressStyle =>
  options.json
    ? "none"
    : process.stderr.isTTY && process.env["CI"] === undefined
      ? "bars"
      : options.verbose === false
        ? "quiet"
        : "lines"

/** The shortest time that gives a rate. */
export const rateAfterMs = 1_000
/** Without bars, work in progress prints a line at this interval. */
export const lineEveryMs = 10_000

/** `4,100 records/s`; below ten with one decimal. */
export const recordRate = (records: number, elapsedMs: number): string => {
  const perSecond = (records * 1000) / elapsedMs
  return `${Output.count(perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond))} records/s`
}

/** `about 12 min left`, as roughly as it is known. */
export const timeLeft = (milliseconds: number): string => {
  const seconds = milliseconds / 1000
  if (seconds < 10) return "about a few seconds left"
  if (seconds < 90) return `about ${Math.ceil(seconds / 10) * 10} s left`
  const minutes = Math.ceil(seconds / 60)
  return `about ${minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`} left`
}

/** Bars of this format, drawn until the scope ends. */
export const bars = Effect.fnUntraced(function* (format: string): Effect.fn.Return<MultiBar, never, Scope.Scope> {
  const { default: cliProgress } = yield* Effect.promise(() => import("cli-progress"))
  return yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new cliProgress.MultiBar(
          {
            format,
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
    (drawn) =>
      Effect.sync(() => {
        drawn.update()
        drawn.stop()
      })
  )
})
