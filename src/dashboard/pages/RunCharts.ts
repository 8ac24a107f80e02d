/** The last day of runs: bars by status, and a lane for each resource. */
import type { RunHour, RunHours, RunsOf } from "../../status/RunHours.ts"
import { failuresOf } from "../../status/RunHours.ts"
import { barChart } from "../../web/BarChart.ts"
import { chart, laneOf, type Stretch } from "../../web/Chart.ts"
import { hourSlots, hourTicks, type Place, placesOf, sinceFirst } from "../../web/Hours.ts"
import { count, table, type Tone } from "../../web/Components.ts"
import { plural, visible } from "../../web/Escape.ts"
import { clock } from "../../web/Times.ts"
import { resourceAddress, runsOfHour } from "../Addresses.ts"
import { html, type Html } from "../Page.ts"

/** From the bottom of a bar to its top. */
const kinds: ReadonlyArray<readonly [tone: Tone, word: string, of: (hour: RunHour) => number]> = [
  ["good", "done", ({ runs, quarantined, failed, abandoned }) => runs - quarantined - failed - abandoned],
  ["warn", "quarantined", ({ quarantined }) => quarantined],
  ["quiet", "abandoned", ({ abandoned }) => abandoned],
  ["bad", "failed", ({ failed }) => failed]
]

const wordsOf = (hour: RunHour): string =>
  kinds.flatMap(([, word, of]) => (of(hour) > 0 ? [`${count(of(hour))} ${word}`] : [])).join(", ")

/** The kind of the worst run of an hour. */
const worstOf = (hour: RunHour): Tone => kinds.findLast(([, , of]) => of(hour) > 0)?.[0] ?? "quiet"

const stretchOf = (hour: RunHour, index: number, places: number, most: number): Stretch => ({
  link: runsOfHour(hour.at, { company: hour.company, resource: hour.resource }),
  from: index / places,
  to: (index + 0.9) / places,
  kind: worstOf(hour),
  strength: hour.runs / most,
  text: `${clock(hour.at)}: ${wordsOf(hour)}`
})

interface Totals {
  readonly name: string
  readonly own: ReadonlyArray<RunHour>
}

const resourcesNamed = 2

/** Which resources failed in how many hours, the worst first. */
const findingOf = (totals: ReadonlyArray<Totals>): string => {
  const failing = totals
    .map(({ name, own }) => ({ name, hours: own.filter(({ failed }) => failed > 0).length }))
    .filter(({ hours }) => hours > 0)
  const named = failing.slice(0, resourcesNamed).map(({ name, hours }) => `${name} failed in ${plural(hours, "hour")}`)
  const further = failing.slice(resourcesNamed)
  return failing.length === 0
    ? `None of the ${count(totals.length)} with the most runs failed.`
    : `${named.join("; ")}${further.length === 0 ? "" : `; ${plural(further.length, "other")} in at most ${plural(Math.max(...further.map(({ hours }) => hours)), "hour")}`}.`
}

const lanes = ({ resources }: RunHours, places: ReadonlyArray<Place<RunHour>>, hasCompany: boolean): Html => {
  if (resources.length < 2) return html``
  const placeOf = new Map(places.map(({ at }, index) => [at.getTime(), index]))
  const totals = resources.map(({ company, resource, hours: own }) => {
    const sum = (of: (hour: RunHour) => number) => own.reduce((all, hour) => all + of(hour), 0)
    const name = `${visible(resource)}${hasCompany ? `, ${visible(company)}` : ""}`
    return { name, sum, own, link: html`<a href="${resourceAddress(company, resource)}">${name}</a>` }
  })
  return chart({
    id: "lanes",
    title: "Runs by resource",
    unit: "By hour, the worst resource first. The colour is that of the worst run of an hour, and links to its runs.",
    summary: findingOf(totals),
    keys: kinds.map(([tone, word]) => [tone, word]),
    ticks: hourTicks(places),
    figures: [
      "runs by resource",
      table(
        "Runs of the last day by resource, worst first",
        `Resource, ${kinds.map(([, word]) => `#${word}`).join(", ")}`,
        totals.map(({ sum, link }) => [link, ...kinds.map(([, , of]) => count(sum(of)))])
      )
    ],
    plots: totals.map(({ name, own, sum, link }) => {
      const most = Math.max(1, ...own.map(({ runs }) => runs))
      const all = plural(
        sum(({ runs }) => runs),
        "run"
      )
      return laneOf(
        link,
        `${name}: ${all}, ${count(sum(failuresOf))} failed or abandoned`,
        own.flatMap((hour) => {
          const index = placeOf.get(hour.at.getTime())
          return index === undefined || hour.runs === 0 ? [] : [stretchOf(hour, index, places.length, most)]
        })
      )
    })
  })
}

/** Both charts of the last day. */
export const runsOfDay = (read: RunHours, of: RunsOf, now: Date, hasCompany: boolean): Html => {
  const places = sinceFirst(placesOf(read.all, now))
  const total = (valueOf: (hour: RunHour) => number) => read.all.reduce((sum, hour) => sum + valueOf(hour), 0)
  const hasFailures = total(failuresOf) > 0
  return html`<div class="charts">
    ${barChart({
      id: "trend",
      title: "Runs in the last day",
      unit: "runs that ended, by hour",
      summary: `${kinds.map(([, word, valueOf]) => `${count(total(valueOf))} ${word}`).join(", ")}.`,
      quantity: "count",
      series: kinds.map(([tone, word]) => [tone, word]),
      ...hourSlots(places, (hour) => ({
        to: runsOfHour(hour.at, { company: of.company, resource: of.resource }),
        values: kinds.map(([, , valueOf]) => valueOf(hour)),
        ...(failuresOf(hour) > 0 ? { sign: "✕" } : {})
      })),
      least: 4,
      keys: hasFailures ? [["sign failed", "a run failed or was abandoned"]] : [],
      heading: "Hour",
      empty: "No run is recorded for the last day. tributary serve records runs once a minute while it runs."
    })}
    ${lanes(read, places, hasCompany)}
  </div>`
}
