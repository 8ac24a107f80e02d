/**
 * The charts of a run and of a resource: phases on a time axis, and bars over time.
 *
 * Promise: the server draws them, so that they need no script. Colours come from the style sheet by class. A table beside
 * each chart states the same figures.
 */
import { scaleLinear } from "d3-scale"
import { type PhaseName, phaseNames, type RunPhases } from "../sync/RunPhases.ts"
import { count, duration } from "../web/Components.ts"
import { html, type Html } from "./Page.ts"

// In units of the drawing, which scales to the available width.
const width = 720
const [left, right] = [16, 704]

export const phaseWords: Readonly<Record<PhaseName, string>> = {
  budget: "Waiting for the rate budget",
  request: "Requests in flight",
  retry: "Waiting before a retry",
  landing: "Landing"
}

const tenth = (value: number): number => Math.round(value * 10) / 10

/** The unit of an axis of this length, in milliseconds. */
const unitOf = (lengthMs: number): readonly [ms: number, word: string] =>
  lengthMs < 2_000
    ? [1, "ms"]
    : lengthMs < 120_000
      ? [1_000, "s"]
      : lengthMs < 7_200_000
        ? [60_000, "min"]
        : [3_600_000, "h"]

const laneHeight = 58
const barHeight = 26

/** A path with one column for each slot in which the phase was active. The height is the share of the slot, at most 1. */
const columnsOf = (slots: ReadonlyArray<number>, slotMs: number, x: (ms: number) => number, bottom: number): string =>
  slots
    .map((ms, index) => {
      if (ms <= 0) return ""
      const [from, to] = [tenth(x(index * slotMs)), tenth(x((index + 1) * slotMs))]
      const height = tenth(Math.max(2, Math.min(1, ms / slotMs) * barHeight))
      return `M${from} ${bottom}v${-height}H${tenth(Math.max(to, from + 1))}v${height}z`
    })
    .join("")

/** The phases of a run, one lane each, on the time since its start. */
export const phaseChart = (phases: RunPhases): Html => {
  const { took_ms: tookMs, slot_ms: slotMs } = phases
  const lengthMs = Math.max(tookMs, 1)
  const bottom = 10 + phaseNames.length * laneHeight
  const x = scaleLinear([0, lengthMs], [left, right])
  const [unitMs, unit] = unitOf(lengthMs)
  const inside = (ms: number) => Math.min(right, x(ms))
  const ticks = scaleLinear([0, lengthMs / unitMs], [left, right]).ticks(4)
  const words = phaseNames.map((name) => `${phaseWords[name]}: ${duration(phases.phases[name].ms)} in total.`).join(" ")
  return html`<svg
    class="chart phases"
    viewBox="0 0 ${width} ${bottom + 40}"
    role="img"
    aria-labelledby="phases-title phases-words"
  >
    <title id="phases-title">The phases of the run on a time axis</title>
    <desc id="phases-words">The run took ${duration(tookMs)}. ${words} The table below has the same figures.</desc>
    <g class="grid">
      ${ticks.map((tick) => {
        const at = tenth(x(tick * unitMs))
        const anchor = at > right - 40 ? "end" : at < left + 20 ? "start" : "middle"
        return html`<line x1="${at}" x2="${at}" y1="10" y2="${bottom + 5}" /><text
            x="${at}"
            y="${bottom + 28}"
            text-anchor="${anchor}"
          >
            ${tick.toLocaleString("en-US")} ${unit}
          </text>`
      })}
    </g>
    ${phaseNames.map((name, index) => {
      const base = 10 + (index + 1) * laneHeight - 4
      const { ms, slots } = phases.phases[name]
      return html`<text class="bar-label" x="${left + 4}" y="${base - barHeight - 6}">
          ${phaseWords[name]}: ${duration(ms)}
        </text>
        <path class="phase ${name}" d="${columnsOf(slots, slotMs, inside, base)}" />
        <path class="axis" d="M${left} ${base}H${right}" />`
    })}
  </svg>`
}

// ---------------------------------------------------------------------------------------------------------------- bars

export interface Bar {
  /** The text for a screen reader and a pointer, with the unit. */
  readonly text: string
  /** The page that the bar links to; null for none. */
  readonly to: string | null
  /** Null draws nothing at this place. */
  readonly value: number | null
  readonly tone: "plain" | "warn" | "bad"
}

export interface BarOptions {
  /** Unique on its page. */
  readonly id: string
  readonly title: string
  /** The label of a value on the axis, with its unit. */
  readonly format: (value: number) => string
  /** The labels of the first and the last bar. */
  readonly ends: readonly [first: string, last: string]
  /** A line across the bars, such as a target; null for none. */
  readonly target: { readonly value: number; readonly text: string } | null
}

const barsHeight = 120
const barsTop = 34

/** Bars over time; each is a link where it has a page. */
export const barChart = (bars: ReadonlyArray<Bar>, { id, title, format, ends, target }: BarOptions): Html => {
  const most = Math.max(...bars.map(({ value }) => value ?? -1))
  const highest = Math.max(...bars.map(({ value }) => value ?? 0), target?.value ?? 0, Number.MIN_VALUE)
  const bottom = barsTop + barsHeight
  const slot = (right - left) / Math.max(bars.length, 12)
  const heightOf = (value: number) => tenth((value / highest) * barsHeight)
  const line = target === null ? 0 : bottom - heightOf(target.value)
  return html`<svg class="chart bars" viewBox="0 0 ${width} ${bottom + 36}" role="group" aria-labelledby="${id}-title">
    <title id="${id}-title">${title}</title>
    <text class="unit" x="${left}" y="22">${title}${most >= 0 ? `, at most ${format(most)}` : ": no figure yet"}</text>
    ${bars.map(({ value, text, to, tone }, index) => {
      if (value === null) return ""
      const height = Math.max(2, heightOf(value))
      const shape = html`<rect
        class="bar ${tone}"
        x="${tenth(left + index * slot + slot * 0.1)}"
        y="${tenth(bottom - height)}"
        width="${tenth(slot * 0.8)}"
        height="${height}"
        ><title>${text}</title></rect
      >`
      return to === null ? shape : html`<a href="${to}" aria-label="${text}" tabindex="-1">${shape}</a>`
    })}
    <path class="axis" d="M${left} ${bottom}H${right}" />
    ${
      target === null
        ? ""
        : html`<path class="target" d="M${left} ${line}H${right}" /><text
              class="end"
              x="${right}"
              y="22"
              text-anchor="end"
            >
              ${target.text}
            </text>`
    }
    <text class="start" x="${left}" y="${bottom + 26}">${ends[0]}</text>
    <text class="end" x="${tenth(left + slot * bars.length)}" y="${bottom + 26}" text-anchor="end">${ends[1]}</text>
  </svg>`
}

/** A count as the label of an axis. */
export const wholeNumber = (value: number): string => count(Math.round(value))
