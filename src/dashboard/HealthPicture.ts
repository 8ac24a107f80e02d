/** The health of all resources as one picture: a tile for each resource. */
import { healthStates, type HealthState, type ResourceState, type ShownCompany } from "../status/Resources.ts"
import { count, type Tone } from "../web/Components.ts"
import { visible } from "../web/Escape.ts"
import { html, type Html } from "./Page.ts"

const tones: Readonly<Record<HealthState, Tone>> = {
  failing: "bad",
  late: "warn",
  "never-synced": "quiet",
  quarantine: "warn",
  blocked: "quiet",
  paused: "quiet",
  fresh: "good"
}
const wordOf = (state: HealthState): string => state.replaceAll("-", " ")

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
