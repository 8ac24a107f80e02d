/** `/records`: the resources with their counts, the records of one, and every version of a record. */
import {
  badge,
  count,
  facts,
  none,
  pager,
  section,
  select,
  table,
  type Tone
} from "../../../../../src/web/Components.ts"
import { address, plural, truncated, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { print, Raw } from "../../json.ts"
import type { Change } from "../../store/Store.ts"
import { sharedCompany } from "../../store/Store.ts"
import type { Table, Version } from "../../store/Table.ts"
import type { World } from "../../World.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { numberOf, ofQuery, page, PageError, root } from "../Page.ts"
import { when } from "../Parts.ts"
import { pretty } from "../Pretty.ts"

const rowsMax = 100
const versionsMax = 50
const valueMax = 120

const path = `${root}/records`
const tablePath = (company: number, resource: string) => `${path}/${company}/${resource}`

const companyOf = (request: PageRequest, text: string | null): number => {
  const companies = request.world.store.companies()
  const company = numberOf(text, "A company") ?? companies[0] ?? 1
  if (!companies.includes(company)) throw new PageError(404, `There is no company ${company}.`)
  return company
}

// ---------------------------------------------------------------------------------------------------- all resources

const resourceRows = (
  world: World,
  company: number,
  search: string | null
): ReadonlyArray<ReadonlyArray<Html | string>> =>
  [...world.store.catalogue.resources.values()]
    .filter(({ path: name }) => search === null || name.includes(search.toLowerCase()))
    .map((resource) => ({ resource, size: world.store.table(company, resource.path).size }))
    .toSorted((a, b) => Number(b.size > 0) - Number(a.size > 0))
    .map(({ resource, size }) => [
      html`<a href="${tablePath(company, resource.path)}">${resource.path}</a>`,
      size === 0 ? none("0") : count(size),
      resource.area,
      resource.operations.join(" "),
      html`${resource.basis}${resource.shared ? html`<span class="detail">shared by all companies</span>` : ""}`
    ])

const list = (request: PageRequest): Page => {
  const { world } = request
  const companies = world.store.companies()
  const search = ofQuery(request, "resource")
  if (companies.length === 0) {
    return page({
      title: "Records",
      section: "records",
      body: html`<h1>Records</h1>
        <p class="note">No company exists yet: a token creates one.</p>`
    })
  }
  const company = companyOf(request, ofQuery(request, "company"))
  const rows = resourceRows(world, company, search)
  return page({
    title: "Records",
    section: "records",
    body: html`<h1>Records</h1>
      <form method="get" action="${path}" class="ask" role="search" aria-label="Choose a company">
        ${select("company", "Company", "the first", companies.map(String), String(company))}
        <p>
          <label for="resource">Resource</label>
          <input
            id="resource"
            name="resource"
            type="search"
            value="${search ?? ""}"
            maxlength="60"
            autocapitalize="none"
          />
        </p>
        <p class="buttons"><button type="submit" class="primary">Show</button></p>
      </form>
      ${
        rows.length === 0
          ? html`<p class="note">No resource has this name.</p>`
          : table(`Resources of company ${company}`, "Resource, #Records, Area, Operations, Documents", rows)
      }`
  })
}

// ------------------------------------------------------------------------------------------------- one resource

const targetOf = (request: PageRequest): { readonly company: number; readonly table: Table } => {
  const company = companyOf(request, request.path["company"] ?? null)
  const resource = request.path["resource"] ?? ""
  if (!request.world.store.catalogue.resources.has(resource)) throw new PageError(404, "There is no such resource.")
  return { company, table: request.world.store.table(company, resource) }
}

const text = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Raw ? value.text : print(value)

const shownValue = (value: unknown): Html =>
  value === null || value === undefined ? none("null") : html`<code>${truncated(text(value), valueMax)}</code>`

const nameFields = ["name", "description", "title", "invoicenumber", "status"]

const nameOf = ({ values, table: { resource } }: Version): Html => {
  const key = resource.key?.field
  const name = [key, ...nameFields].find(
    (field) => field !== undefined && values[field] !== null && values[field] !== undefined
  )
  return name === undefined ? none("") : html`${truncated(text(values[name]), 60)}<span class="detail">${name}</span>`
}

const rowOf = (version: Version, company: number, now: Date): ReadonlyArray<Html | string> => [
  html`<a href="${tablePath(company, version.table.resource.path)}/${version.id}">${version.id}</a>`,
  nameOf(version),
  version.cancelled ? badge("quiet", "cancelled") : badge("good", "active"),
  String(version.version),
  when(version.at, now)
]

/** The newest records before an id, and one more. */
const newest = (records: Table, before: number | null): ReadonlyArray<Version> => {
  const found: Array<Version> = []
  const { order } = records
  for (let index = order.length - 1; index >= 0 && found.length <= rowsMax; index--) {
    const id = order[index]!
    const version = before === null || id < before ? records.get(id) : undefined
    if (version !== undefined) found.push(version)
  }
  return found
}

const resource = (request: PageRequest): Page => {
  const { company, table: records } = targetOf(request)
  const { path: name, purpose, area } = records.resource
  const id = numberOf(ofQuery(request, "id"), "The number of a record")
  const before = numberOf(ofQuery(request, "before"), "The position in the list")
  const one = id === null ? undefined : records.get(id)
  const found = id === null ? newest(records, before) : one === undefined ? [] : [one]
  const shown = found.slice(0, rowsMax)
  const next = found.length > rowsMax ? shown.at(-1)!.id : null
  return page({
    title: name,
    section: "records",
    body: html`<p><a href="${address(path, { company: String(company) })}">Records of company ${company}</a></p>
      <h1>${name}</h1>
      <p>${visible(purpose)} Area ${area}, ${plural(records.size, "record")}.</p>
      <form method="get" action="${tablePath(company, name)}" class="ask" role="search" aria-label="Find a record">
        <p>
          <label for="id">Number</label>
          <input id="id" name="id" inputmode="numeric" value="${id ?? ""}" autocomplete="off" />
        </p>
        <p class="buttons"><button type="submit" class="primary">Find</button></p>
      </form>
      ${
        shown.length === 0
          ? html`<p class="note">
              ${id === null ? "There is no record." : `There is no record ${id}; its history may exist:`}
              ${id === null ? "" : html`<a href="${tablePath(company, name)}/${id}">versions of ${id}</a>`}
            </p>`
          : table(
              "Records, newest number first",
              "Number, Name, State, #Version, Changed",
              shown.map((version) => rowOf(version, company, request.now))
            )
      }
      ${pager("Parts of the list", ["Newest", "Older"], { after: before, next }, (place) => address(tablePath(company, name), { before: place === null ? null : String(place) }))}`
  })
}

// --------------------------------------------------------------------------------------------------- one record

const membersOf = ({ values, extra, custom }: Version): ReadonlyMap<string, unknown> =>
  new Map<string, unknown>([
    ...Object.entries(values),
    ...[...(extra ?? [])].map(([name, json]) => [name, new Raw(json)] as const),
    ...[...(custom ?? [])].map(([name, json]) => [`custom_fields.${name}`, new Raw(json)] as const)
  ])

const differences = (before: Version, after: Version): ReadonlyArray<ReadonlyArray<Html | string>> => {
  const [old, current] = [membersOf(before), membersOf(after)]
  return [...new Set([...old.keys(), ...current.keys()])]
    .filter((name) => !name.startsWith("_") && text(old.get(name) ?? null) !== text(current.get(name) ?? null))
    .map((name) => [html`<code>${visible(name)}</code>`, shownValue(old.get(name)), shownValue(current.get(name))])
}

const opTones: Readonly<Record<Change["op"], Tone>> = { insert: "good", update: "busy", delete: "bad" }

const changeCard = (change: Change, before: Version | null, world: World, now: Date): Html => {
  const { op, version, at } = change
  const changed = op === "update" && before !== null ? differences(before, version) : []
  const key = `version-${change.seq}`
  return html`<article class="card">
    <h3>${op === "delete" ? "Removed" : `Version ${version.version}`} ${badge(opTones[op], op)}</h3>
    ${facts([
      ["Committed", when(at, now)],
      ["Position in the history", count(change.seq)]
    ])}
    ${changed.length === 0 ? "" : table(`What version ${version.version} changed`, "Field, Before, After", changed)}
    <details id="${key}">
      <summary>The whole record in this version</summary>
      <pre tabindex="0" role="region" aria-label="The record">${pretty(world.renderer.render(version)) ?? ""}</pre>
    </details>
  </article>`
}

const record = (request: PageRequest): Page => {
  const { company, table: records } = targetOf(request)
  const { world, now } = request
  const name = records.resource.path
  const id = numberOf(request.path["id"] ?? null, "The number of a record") ?? 0
  const all = world.store.history.filter(
    ({ version }) =>
      version.id === id &&
      version.table.resource.path === name &&
      (version.table.company === company || version.table.company === sharedCompany)
  )
  const present = records.get(id)
  if (all.length === 0 && present === undefined) throw new PageError(404, `Company ${company} has no ${name} ${id}.`)
  const shown = all.slice(-versionsMax)
  const cards = shown.map((change, index) =>
    changeCard(change, change.before ?? shown[index - 1]?.version ?? null, world, now)
  )
  return page({
    title: `${name} ${id}`,
    section: "records",
    body: html`<p><a href="${tablePath(company, name)}">${name} of company ${company}</a></p>
      <h1>${name} ${id}</h1>
      ${facts([
        [
          "State",
          present === undefined
            ? badge("bad", "removed")
            : present.cancelled
              ? badge("quiet", "cancelled")
              : badge("good", "active")
        ],
        ["Versions", count(all.filter(({ op }) => op !== "delete").length)],
        ["Requests", html`<a href="${address(`${root}/requests`, { path: `/${name}/${id}` })}">requests for it</a>`]
      ])}
      ${section("versions", "Versions, newest first", html`${cards.toReversed()}`)}
      ${all.length > shown.length ? html`<p>The first ${count(all.length - shown.length)} are not shown; <code>GET /history</code> of the control plane has all.</p>` : ""}`
  })
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/records", handle: list },
  { method: "GET", path: "/records/:company/:resource", handle: resource },
  { method: "GET", path: "/records/:company/:resource/:id", handle: record }
]
