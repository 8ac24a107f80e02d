/**
 * The lifetimes of processes over the last day, one lane each.
 *
 * Promise: the server draws it, so that it needs no script. The list of processes beside it states the same times.
 */
import { scaleUtc } from "d3-scale"
import type { ListedProcess } from "../status/Processes.ts"
import { duration, type Tone } from "../web/Components.ts"
import { visible } from "../web/Escape.ts"
import { clock } from "./Chart.ts"
import { html, type Html } from "./Page.ts"

const dayMs = 24 * 3_600_000
/** Lanes that are drawn; further processes are in the list. */
const lanesMax = 12
// In units of the drawing, which scales to the available width.
const width = 720
const [left, right] = [190, width - 12]
const laneHeight = 26
const [top, axisHeight] = [8, 30]
const hoursBetween = 6

export const processTones: Readonly<Record<ListedProcess["state"], Tone>> = {
  running: "good",
  lost: "bad",
  stopped: "quiet"
}

/** Host and number, where they are known. */
export const nameOf = ({ host, pid, processId }: ListedProcess): string =>
  host === null ? visible(processId) : `${visible(host)}${pid === null ? "" : `, pid ${pid}`}`

/** The end of its life, as far as it is known: a running process lives until now. */
export const endOf = ({ state, stoppedAt, heartbeatAt }: ListedProcess, now: Date): Date =>
  state === "running" ? now : (stoppedAt ?? heartbeatAt)

const shorten = (text: string): string => (text.length > 24 ? `${text.slice(0, 23)}…` : text)

/** The lifetimes of those that lived within the last day; nothing where none did. */
export const processChart = (processes: ReadonlyArray<ListedProcess>, now: Date): Html => {
  const from = new Date(now.getTime() - dayMs)
  const lived = processes.filter((one) => endOf(one, now) >= from)
  if (lived.length === 0) return html``
  const shown = lived.slice(0, lanesMax)
  const across = scaleUtc([from, now], [left, right]).clamp(true)
  const x = (at: Date) => Math.round(across(at) * 10) / 10
  const bottom = top + shown.length * laneHeight
  const hours = across.ticks(24).filter((at) => at.getUTCMinutes() === 0 && at.getUTCHours() % hoursBetween === 0)
  return html`<figure class="chart">
    <figcaption id="lives-title">
      Processes of the last day (UTC)${lived.length > shown.length ? `, ${shown.length} of ${lived.length}` : ""}:
      <span class="key good">running</span> <span class="key bad">lost</span> <span class="key quiet">stopped</span>
    </figcaption>
    <svg
      class="chart"
      viewBox="0 0 ${width} ${bottom + axisHeight}"
      role="img"
      aria-labelledby="lives-title"
      aria-describedby="processes-table"
    >
      ${shown.map((one, lane) => {
        const y = top + lane * laneHeight
        const end = endOf(one, now)
        return html`<text class="up" x="${left - 10}" y="${y + laneHeight / 2}" dy="0.2em">${shorten(nameOf(one))}</text
          ><rect class="lane" x="${left}" y="${y}" width="${right - left}" height="${laneHeight - 6}" /><rect
            class="${processTones[one.state]}"
            x="${x(one.startedAt)}"
            y="${y}"
            width="${Math.max(3, Math.round((x(end) - x(one.startedAt)) * 10) / 10)}"
            height="${laneHeight - 6}"
            ><title>
              ${nameOf(one)}: ${one.state}, from ${clock(one.startedAt)} for
              ${duration(Math.max(0, end.getTime() - one.startedAt.getTime()))}
            </title></rect
          >`
      })}
      <g class="grid">
        ${hours.map(
          (at) =>
            html`<line x1="${x(at)}" x2="${x(at)}" y1="${bottom}" y2="${bottom + 5}" /><text
                class="across"
                x="${x(at)}"
                y="${bottom + 21}"
                >${clock(at)}</text
              >`
        )}
      </g>
    </svg>
  </figure>`
}
