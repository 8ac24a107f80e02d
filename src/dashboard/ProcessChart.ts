/**
 * The lifetimes of processes over the last day, one lane each.
 *
 * Promise: the server draws it, so that it needs no script. The list of processes beside it states the same times.
 */
import type { ListedProcess } from "../status/Processes.ts"
import { hoursUntil, laneChart } from "../web/Chart.ts"
import { duration, type Tone } from "../web/Components.ts"
import { visible } from "../web/Escape.ts"
import { clock } from "../web/Times.ts"
import { html, type Html } from "./Page.ts"

const dayMs = 24 * 3_600_000
/** Lanes that are drawn; further processes are in the list. */
const lanesMax = 12
const states = ["running", "lost", "stopped"] as const

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

/** The lifetimes of those that lived within the last day; nothing where none did. */
export const processChart = (processes: ReadonlyArray<ListedProcess>, now: Date): Html => {
  const from = now.getTime() - dayMs
  const lived = processes.filter((one) => endOf(one, now).getTime() >= from)
  if (lived.length === 0) return html``
  const shown = lived.slice(0, lanesMax)
  const share = (at: Date) => Math.max(0, (at.getTime() - from) / dayMs)
  const countOf = (state: ListedProcess["state"]) => lived.filter((one) => one.state === state).length
  return laneChart(
    {
      id: "lives",
      title: "Processes of the last day",
      unit: `The last 24 hours${lived.length > shown.length ? `; ${shown.length} of ${lived.length} processes` : ""}.`,
      summary: `${states.map((state) => `${countOf(state)} ${state}`).join(", ")}.`,
      keys: states.map((state) => [processTones[state], state] as const),
      ticks: hoursUntil(now, 23).flatMap((at) =>
        at.getUTCHours() % 6 === 0 ? [{ share: share(at), label: clock(at) }] : []
      )
    },
    shown.map((one) => {
      const text = `${nameOf(one)}: ${one.state}, from ${clock(one.startedAt)} for ${duration(Math.max(0, endOf(one, now).getTime() - one.startedAt.getTime()))}`
      const stretch = {
        from: share(one.startedAt),
        to: share(endOf(one, now)),
        kind: processTones[one.state],
        strength: 1,
        text
      }
      return { name: nameOf(one), summary: text, stretches: [stretch] }
    })
  )
}
