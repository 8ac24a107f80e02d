/**
 * The table at the end of a bench run.
 *
 * Promise: a figure with a bound shows whether it meets the bound. A figure that could not be measured shows so and
 * meets no bound.
 */
import * as Output from "../../src/cli/Output.ts"

export interface Figure {
  readonly what: string
  readonly value: number | null
  /** The value of the baseline; null when the bound is on the value itself. */
  readonly baseline: number | null
  readonly unit: "rows/s" | "events/s" | "MB" | "s" | "ms" | "requests" | "rows" | "statements/s" | "share"
  /** A bound on the ratio if there is a baseline, otherwise on the value. */
  readonly atLeast?: number
  readonly atMost?: number
  readonly note: string
}

/** A figure without a baseline, a bound or a note unless they are given. */
export const figure = (
  what: string,
  unit: Figure["unit"],
  value: number | null,
  more: Partial<Pick<Figure, "baseline" | "atLeast" | "atMost" | "note">> = {}
): Figure => ({ what, unit, value, baseline: null, note: "", ...more })

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median of the measured values; null when one is missing. */
export const medianOf = (values: ReadonlyArray<number | null>): number | null => {
  const measured = values.filter((value) => value !== null)
  return measured.length === 0 || measured.length < values.length ? null : median(measured)
}

const ratioOf = ({ value, baseline }: Figure): number | null =>
  value === null || baseline === null || baseline === 0 ? null : value / baseline

const resultOf = (figure: Figure): "kept" | "MISSED" | "not measured" | "" => {
  const { atLeast, atMost } = figure
  if (atLeast === undefined && atMost === undefined) return ""
  const compared = figure.baseline === null ? figure.value : ratioOf(figure)
  if (compared === null) return "not measured"
  return compared >= (atLeast ?? -Infinity) && compared <= (atMost ?? Infinity) ? "kept" : "MISSED"
}

export const isMissed = (figure: Figure): boolean => resultOf(figure) === "MISSED"

const shown = (value: number | null, unit: Figure["unit"]): string => {
  if (value === null) return ""
  switch (unit) {
    case "rows/s":
    case "events/s":
    case "requests":
    case "rows":
      return Output.count(Math.round(value))
    case "MB":
    case "ms":
      return value.toFixed(0)
    case "statements/s":
      return value.toFixed(1)
    case "s":
      return value.toFixed(2)
    case "share":
      return `${(value * 100).toFixed(1)} %`
  }
}

const boundShown = ({ atLeast, atMost, baseline, unit }: Figure): string => {
  const limit = atLeast ?? atMost
  if (limit === undefined) return ""
  return `${atLeast === undefined ? "<=" : ">="} ${baseline === null ? shown(limit, unit) : String(limit)}`
}

export const table = (figures: ReadonlyArray<Figure>): string =>
  Output.table(
    ["what", "value", "baseline", "unit", "ratio", "bound", "result", ""],
    figures.map((figure) => [
      figure.what,
      shown(figure.value, figure.unit),
      shown(figure.baseline, figure.unit),
      figure.unit,
      ratioOf(figure)?.toFixed(figure.unit === "rows" ? 4 : 2) ?? "",
      boundShown(figure),
      resultOf(figure),
      figure.note
    ]),
    ["left", "right", "right", "left", "right", "left", "left"]
  )

/** The figures as JSON. */
export const plain = (figures: ReadonlyArray<Figure>): ReadonlyArray<unknown> =>
  figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), result: resultOf(figure) }))
