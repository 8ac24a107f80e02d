/** The health of all resources as one picture: a tile for each resource, or shares where there are many companies. */
import { scaleLinear } from "d3-scale"
import { healthStates, type HealthState, type ResourceState, type ShownCompany } from "../status/Resources.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"
import { count, type Tone } from "../web/Components.ts"
import { plural, visible } from "../web/Escape.ts"
import { html, type Html } from "./Page.ts"

const tones: Readonly<Record<HealthState | State, Tone>> = {
  failing: "bad",
  late: "warn",
  attention: "warn",
  "never-synced": "quiet",
  quarantine: "warn",
  blocked: "quiet",
  paused: "quiet",
  fresh: "good"
}
const wordOf = (state: HealthState | State): string => state.replaceAll("-", " ")

/** The number in each state, the worst first. */
const countsOf = (states: ReadonlyArray<ResourceState>): string =>
  healthStates
    .map((state) => [state, states.filter(({ health }) => health.state === state).length] as const)
    .filter(([, number]) => number > 0)
    .map(([state, number]) => (number === states.length ? `all ${wordOf(state)}` : `${count(number)} ${wordOf(state)}`))
    .join(", ")

const row = (name: string, states: ReadonlyArray<ResourceState>): Html => {
  const counts = countsOf(states)
  return html`<li>
    <span class="name">${visible(name)}</span>
    <span class="tiles" role="img" aria-label="${visible(name)}: ${counts}"
      >${states.map(
        ({ resource, health: { state } }) =>
          html`<i class="${tones[state]}" title="${visible(resource)}: ${wordOf(state)}"></i>`
      )}</span
    >
    <span class="counts">${counts}</span>
  </li>`
}

const rankOf = ({ health }: ResourceState): number => healthStates.indexOf(health.state)

/** A tile for each resource, by area; of several companies by company. */
export const healthTiles = (companies: ReadonlyArray<ShownCompany>, all: ReadonlyArray<ResourceState>): Html => {
  if (all.length === 0) return html``
  const areas = new Map(
    companies.flatMap(({ connector }) =>
      [...connector.catalogue.resources.values()].map(({ path, area }) => [path, area] as const)
    )
  )
  const groups = [
    ...Map.groupBy(all, ({ company, resource }) => (companies.length > 1 ? company : (areas.get(resource) ?? "other")))
  ]
    .map(([name, states]) => ({ name, states: states.toSorted((one, other) => rankOf(one) - rankOf(other)) }))
    .toSorted((one, other) => rankOf(one.states[0]!) - rankOf(other.states[0]!) || (one.name < other.name ? -1 : 1))
  return html`<section aria-labelledby="health">
    <h2 id="health">Health by ${companies.length > 1 ? "company" : "area"}, the worst first</h2>
    <ul class="health">
      ${groups.map(({ name, states }) => row(name, states))}
    </ul>
  </section>`
}

const width = 1_000
const height = 28

/** The shares of companies by state. */
export const healthShares = (byState: Readonly<Record<State, number>>): Html => {
  const total = companyStates.reduce((sum, state) => sum + byState[state], 0)
  if (total === 0) return html``
  const across = scaleLinear([0, total], [0, width])
  let before = 0
  const words = companyStates
    .filter((state) => byState[state] > 0)
    .map((state) => `${count(byState[state])} ${wordOf(state)}`)
    .join(", ")
  return html`<figure class="chart">
    <figcaption id="shares-title">${plural(total, "company", "companies")}: ${words}</figcaption>
    <svg
      class="chart shares"
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-labelledby="shares-title"
    >
      ${companyStates.map((state) => {
        const x = Math.round(across(before))
        before += byState[state]
        return byState[state] === 0
          ? ""
          : html`<rect
              class="${tones[state]}"
              x="${x}"
              y="0"
              width="${Math.max(2, Math.round(across(before)) - x - 2)}"
              height="${height}"
              ><title>${wordOf(state)}: ${count(byState[state])}</title></rect
            >`
      })}
    </svg>
  </figure>`
}
