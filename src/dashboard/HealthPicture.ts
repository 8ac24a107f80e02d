/**
 * The health of all resources as one picture: a tile for each resource.
 *
 * A tile is a link. Where there are few, each contains its name. Where there are more, only the resources that are not
 * well are named beside them; the others have their name as a title, and the table of resources lists them by keyboard.
 */
import { healthStates, worse, type HealthState, type ResourceState, type ShownCompany } from "../status/Resources.ts"
import { count, type Tone } from "../web/Components.ts"
import { plural, visible } from "../web/Escape.ts"
import { companyAddress, resourceAddress, resourcesAddress } from "./Addresses.ts"
import { stateWords } from "./Format.ts"
import { html, type Html } from "./Page.ts"

const toneOf = (state: HealthState): Tone => stateWords[state][0]
const wordOf = (state: HealthState): string => stateWords[state][1]

/** The number in each state, the worst first. */
const countsOf = (states: ReadonlyArray<ResourceState>): string =>
  healthStates
    .map((state) => [state, states.filter(({ health }) => health.state === state).length] as const)
    .filter(([, number]) => number > 0)
    .map(([state, number]) => (number === states.length ? `all ${wordOf(state)}` : `${count(number)} ${wordOf(state)}`))
    .join(", ")

/** Up to this many resources, each tile contains its name. */
const namedMax = 60
/** The tiles of all rows together, and the least of one row. */
const tilesMax = 600
const tilesLeast = 12
/** Names of resources beside the tiles of a row. */
const namesMax = 4

const isWell = ({ health: { state } }: ResourceState): boolean => ["good", "quiet"].includes(toneOf(state))

/** Resources that are well can be reached by keyboard in the table. */
const outOfOrder = (state: ResourceState) => (isWell(state) ? html` tabindex="-1"` : "")

const namedTile = (one: ResourceState): Html =>
  html`<a class="${toneOf(one.health.state)}" href="${resourceAddress(one.company, one.resource)}" ${outOfOrder(one)}
    >${visible(one.resource)}<span class="visually-hidden"> ${wordOf(one.health.state)}</span></a
  >`

const smallTile = ({ company, resource, health: { state } }: ResourceState): Html =>
  html`<a
    class="${toneOf(state)}"
    href="${resourceAddress(company, resource)}"
    tabindex="-1"
    title="${visible(resource)}: ${wordOf(state)}"
  ></a>`

interface Group {
  readonly name: string
  readonly to: string
  readonly all: string
  /** The worst first. */
  readonly states: ReadonlyArray<ResourceState>
}

const row = ({ name, to, all, states }: Group, isNamed: boolean, shownMax: number): Html => {
  const bad = states.filter((state) => !isWell(state))
  const shown = states.slice(0, shownMax)
  const left = states.length - shown.length
  return html`<li>
    <a class="name" href="${to}">${visible(name)}</a>
    <span class="counts">${states.length === 0 ? "its resources are not known yet" : countsOf(states)}</span>
    ${
      isNamed
        ? html`<span class="tiles named">${shown.map(namedTile)}</span>`
        : html`<span class="tiles" aria-hidden="true">${shown.map(smallTile)}</span>`
    }
    ${left === 0 ? "" : html`<a class="counts" href="${all}">and ${count(left)} more</a>`}
    ${
      isNamed || bad.length === 0
        ? ""
        : html`<span class="tiles named"
            >${bad.slice(0, namesMax).map(namedTile)}${
              bad.length > namesMax
                ? html`<a class="counts" href="${all}">and ${count(bad.length - namesMax)} more</a>`
                : ""
            }</span
          >`
    }
  </li>`
}

const legend: ReadonlyArray<readonly [tone: Tone, words: string]> = [
  ["bad", "failing"],
  ["warn", "late, blocked or with quarantine"],
  ["quiet", "paused or never synced"],
  ["good", "fresh"]
]

/** The areas of resources by path, of all these companies. */
export const areasOf = (companies: ReadonlyArray<ShownCompany>): ReadonlyMap<string, string> =>
  new Map(
    companies.flatMap(({ connector }) =>
      [...connector.catalogue.resources.values()].map(({ path, area }) => [path, area] as const)
    )
  )
/** The area of a resource that is not in the catalogue. */
export const otherArea = "other"

const groupsOf = (companies: ReadonlyArray<ShownCompany>, all: ReadonlyArray<ResourceState>): ReadonlyArray<Group> => {
  const sorted = all.toSorted(worse)
  if (companies.length !== 1) {
    return companies.map(({ name }) => ({
      name,
      to: companyAddress(name),
      all: resourcesAddress({ company: name }),
      states: sorted.filter(({ company }) => company === name)
    }))
  }
  const areas = areasOf(companies)
  const company = companies[0]!.name
  return [...Map.groupBy(sorted, ({ resource }) => areas.get(resource) ?? otherArea)].map(([name, states]) => {
    const to = resourcesAddress({ company, area: name })
    return { name, to, all: to, states }
  })
}

const rankOf = ({ states: [worst] }: Group): number =>
  worst === undefined ? healthStates.length : healthStates.indexOf(worst.health.state)

/** A tile for each resource, by area; of several companies by company. */
export const healthTiles = (companies: ReadonlyArray<ShownCompany>, all: ReadonlyArray<ResourceState>): Html => {
  if (all.length === 0) return html``
  const groups = groupsOf(companies, all).toSorted(
    (one, other) => rankOf(one) - rankOf(other) || (one.name < other.name ? -1 : 1)
  )
  const isNamed = all.length <= namedMax
  const shownMax = Math.max(tilesLeast, Math.floor(tilesMax / groups.length))
  const table = resourcesAddress({ company: companies.length === 1 ? companies[0]!.name : null })
  return html`<section aria-labelledby="health">
    <div class="head">
      <h2 id="health">Health by ${companies.length === 1 ? "area" : "company"}</h2>
      <p><a href="${table}">All ${plural(all.length, "resource")} as a table</a></p>
    </div>
    <ul class="health${isNamed ? " named" : ""}">
      ${groups.map((group) => row(group, isNamed, shownMax))}
    </ul>
    <ul class="tile-legend">
      ${legend.map(([tone, words]) => html`<li><i class="${tone}"></i> ${words}</li>`)}
    </ul>
  </section>`
}
