/** The lifetimes of processes over the last day, one lane each. The list of processes beside it states the same times. */
import type { ListedProcess } from "../status/Processes.ts"
import { duration, type Tone } from "../web/Components.ts"
import { plural, visible } from "../web/Escape.ts"
import { chart, laneOf } from "../web/Chart.ts"
import { timeTicks } from "../web/Hours.ts"
import { clock, dayMs } from "../web/Times.ts"
import { processAddress } from "./Addresses.ts"
import { html, type Html } from "./Page.ts"

/** Lanes that are drawn; further processes are in the list. */
const lanesMax = 12

export const processTones: Readonly<Record<ListedProcess["state"], Tone>> = {
  running: "good",
  lost: "warn",
  stopped: "quiet"
}

/** Host and number, where they are known. */
export const nameOf = ({ host, pid, processId }: ListedProcess): string =>
  host === null ? visible(processId) : `${visible(host)}${pid === null ? "" : `, pid ${pid}`}`

/** The end of its life, as far as it is known: a running process lives until now. */
export const endOf = ({ state, stoppedAt, heartbeatAt }: ListedProcess, now: Date): Date =>
  state === "running" ? now : (stoppedAt ?? heartbeatAt)

/** A lost process of the last day that no later process of its machine replaced. */
export const unreplacedOf = (processes: ReadonlyArray<ListedProcess>, now: Date) =>
  processes.filter(
    (one) =>
      one.state === "lost" &&
      now.getTime() - one.heartbeatAt.getTime() < dayMs &&
      replacementOf(one, processes) === undefined
  )

/** The start of the next process of its machine. */
const replacementOf = ({ host, heartbeatAt }: ListedProcess, processes: ReadonlyArray<ListedProcess>) =>
  processes
    .filter((other) => other.host === host && other.startedAt > heartbeatAt)
    .map(({ startedAt }) => startedAt)
    .toSorted((one, other) => one.getTime() - other.getTime())[0]

/** The lifetimes of those that lived within the last day; nothing where none did. */
export const processChart = (processes: ReadonlyArray<ListedProcess>, now: Date): Html => {
  const from = new Date(now.getTime() - dayMs)
  const lived = processes.filter((one) => endOf(one, now) >= from)
  if (lived.length === 0) return html``
  const across = (at: Date) => Math.max(0, Math.min(1, (at.getTime() - from.getTime()) / dayMs))
  const countOf = (state: ListedProcess["state"]) => lived.filter((one) => one.state === state).length
  return chart({
    id: "lives",
    title: "Processes of the last day",
    unit: lived.length > lanesMax ? `${lanesMax} of ${lived.length} processes` : "",
    summary: `${plural(countOf("running"), "process", "processes")} running, ${countOf("lost")} lost, ${countOf("stopped")} stopped in order.`,
    keys: [
      ["good", "running"],
      ...(countOf("lost") > 0
        ? [["warn", "✕ lost: from its last heartbeat until another of its machine starts"] as const]
        : [])
    ],
    ticks: timeTicks(from, now),
    plots: lived.slice(0, lanesMax).map((one) => {
      const end = endOf(one, now)
      const shared = { strength: 0.8, link: processAddress(one.processId) }
      const text = `${nameOf(one)}: ${one.state}, from ${clock(one.startedAt)} for ${duration(Math.max(0, end.getTime() - one.startedAt.getTime()))}`
      const lost = {
        ...shared,
        from: across(end),
        to: across(replacementOf(one, processes) ?? now),
        kind: "warn",
        text: `${nameOf(one)}: lost after its heartbeat at ${clock(end)}`,
        sign: "✕"
      }
      return laneOf(nameOf(one), text, [
        { ...shared, from: across(one.startedAt), to: across(end), kind: "good", text },
        ...(one.state === "lost" ? [lost] : [])
      ])
    })
  })
}
