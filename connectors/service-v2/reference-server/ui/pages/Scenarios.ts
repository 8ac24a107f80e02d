/** `/scenarios`: the data of the server, its snapshots and its worlds. */
import { count, facts, none, section, table } from "../../../../../src/web/Components.ts"
import { visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { isObject } from "../../json.ts"
import type { Scenario } from "../../scenarios/Scenario.ts"
import { scenarios } from "../../scenarios/index.ts"
import { pathOf } from "../../worlds/Worlds.ts"
import type { Action } from "../Action.ts"
import { accepted, button, confirmLink, form, routesOf, textOf } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { ofForm, page, PageError, root } from "../Page.ts"
import { input } from "../Parts.ts"

const path = `${root}/scenarios`
const rowsMax = 200
/** Characters of a result, which is sent back in a cookie. */
const noticeMax = 600

// -------------------------------------------------------------------------------------------------------- scenarios

const scenarioCard = (request: PageRequest, { name, description, defaults }: Scenario): Html =>
  html`<article class="card">
    <h3><code>${name}</code></h3>
    <p>${description}</p>
    ${form(
      request,
      "run-scenario",
      html`<input type="hidden" name="name" value="${name}" />
        <div class="ask">
          ${Object.entries(defaults).map(([member, value]) =>
            input(member, member, { id: `${name}-${member}`, value: String(value) })
          )}
          <p class="buttons">
            <button type="submit">Run<span class="visually-hidden"> ${name}</span></button>
          </p>
        </div>`,
      `Run ${name}`
    )}
  </article>`

const scenarioSection = (request: PageRequest): Html =>
  section(
    "run",
    "Rare situations",
    html`<p>Each changes this world so that a client meets what it rarely meets. Keep a snapshot first to undo it.</p>
      <div class="beside">${scenarios.map((one) => scenarioCard(request, one))}</div>`
  )

const run: Action = {
  name: "run-scenario",
  section: "scenarios",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const scenario = scenarios.find(({ name }) => name === nameOf(request.form))
    if (scenario === undefined) throw new PageError(404, "There is no such scenario.")
    const members = Object.keys(scenario.defaults).flatMap((member) => {
      const text = ofForm(request, member)
      if (text !== null && !/^\d+(?:\.\d+)?$/.test(text)) throw new PageError(400, `${member} must be a number.`)
      return text === null ? [] : [[member, Number(text)] as const]
    })
    const { changed } = accepted(await request.call("POST", `/scenarios/${scenario.name}`, Object.fromEntries(members)))
    const said = textOf(changed)
    return `${scenario.name} changed ${said.length > noticeMax ? `${said.slice(0, noticeMax)}…` : said}`
  }
}

// -------------------------------------------------------------------------------------------------------- snapshots

type Members = Readonly<Record<string, unknown>>

const membersOf = (value: unknown): ReadonlyArray<Members> => (Array.isArray(value) ? value.filter(isObject) : [])

const companiesOf = ({ companies }: Members): string => (Array.isArray(companies) ? companies.join(", ") : "")

const snapshotRow = (request: PageRequest, one: Members): ReadonlyArray<Html | string> => {
  const name = textOf(one["name"])
  return [
    visible(name),
    companiesOf(one) || none("none"),
    count(Number(one["records"])),
    one["clock"] === null ? "runs" : html`stopped at ${visible(textOf(one["clock"]).slice(0, 19).replace("T", " "))}`,
    html`<div class="actions">
      ${button(request, "make-world", { from: name }, "New world", `from ${name}`)}
      ${confirmLink("restore", { name }, "Restore", name)} ${confirmLink("forget-snapshot", { name }, "Delete", name)}
    </div>`
  ]
}

const snapshots = (request: PageRequest, all: ReadonlyArray<Members>): Html =>
  section(
    "snapshots",
    "Snapshots",
    html`<p>
        A snapshot has everything but the journal. It shares its records with the world until one of them is written.
      </p>
      ${
        all.length === 0
          ? html`<p class="note">There is none.</p>`
          : table(
              "Snapshots by name",
              "Name, Companies, #Records, Clock, Action",
              all.slice(0, rowsMax).map((one) => snapshotRow(request, one))
            )
      }
      ${form(
        request,
        "save-snapshot",
        html`<div class="ask">
          ${input("name", "Name of the snapshot", {
            id: "snapshot-name",
            hint: "letters, digits, dots, dashes; default snapshot-1 and so on"
          })}
          <p class="buttons"><button type="submit" class="primary">Keep the present state</button></p>
        </div>`,
        "Keep the present state"
      )}`
  )

// ----------------------------------------------------------------------------------------------------------- worlds

const worldRow = (name: string | null, current: string | null): ReadonlyArray<Html | string> => [
  name === current
    ? html`${visible(name ?? "main")} <span class="detail">shown now</span>`
    : // The links of a world's pages are below its address, except this one.
      html`<a href="${name === null ? root : `${pathOf(name)}${root}/`}">${visible(name ?? "main")}</a>`,
  html`<code>${name === null ? "/" : `${pathOf(name)}/`}</code>`,
  name === null || name === current ? none("") : confirmLink("remove-world", { name }, "Delete", name)
]

const worlds = (request: PageRequest): Html => {
  const names = request.worlds.names()
  return section(
    "worlds",
    "Worlds",
    html`<p>
        Each world has its own records, clock, tokens, limits, faults, subscriptions and journal. Its API and its
        control plane are below its path.
      </p>
      ${table(
        "Worlds of this server",
        "Name, Path, Action",
        [null, ...names.slice(0, rowsMax)].map((name) => worldRow(name, request.worldName))
      )}
      ${form(
        request,
        "make-world",
        html`<div class="ask">
          ${input("name", "Name of the new world", { hint: "default world-1 and so on" })}
          ${input("from", "From the snapshot", { hint: "empty: the main world as it is now" })}
          <p class="buttons"><button type="submit" class="primary">Make a world</button></p>
        </div>`,
        "Make a world"
      )}`
  )
}

const show = async (request: PageRequest): Promise<Page> => {
  const { world, worldName } = request
  const listed = accepted(await request.call("GET", "/snapshots"))
  return page({
    title: "Scenarios",
    section: "scenarios",
    body: html`<h1>Scenarios</h1>
      ${facts([
        ["World", visible(worldName ?? "main")],
        ["Companies", world.store.companies().join(", ") || "none"],
        ["Commits in the history", count(world.store.history.length)],
        ["Requests in the journal", count(world.journal.all().length)]
      ])}
      ${scenarioSection(request)} ${worlds(request)} ${snapshots(request, membersOf(listed["snapshots"]))}
      ${section(
        "reset",
        "Reset",
        html`<p>Removes all records, tokens, subscriptions, deliveries, faults and the journal of this world.</p>
          <p class="buttons">
            ${confirmLink("reset", { data: "demo" }, "Reset to demo data")}
            ${confirmLink("reset", { data: "empty" }, "Reset to an empty server")}
          </p>`
      )}`
  })
}

// ---------------------------------------------------------------------------------------------------------- actions

const nameOf = (values: URLSearchParams): string => values.get("name")?.trim() ?? ""
const named = (name: string | null) => (name === null ? {} : { name })

const reset: Action = {
  name: "reset",
  section: "scenarios",
  confirmation: {
    fields: ["data"],
    heading: (values) => `Reset this world to ${values.get("data") === "demo" ? "demo data" : "an empty state"}?`,
    consequences: [
      "All records, tokens, subscriptions, deliveries, faults and the journal are removed.",
      "Limits, dialect and clock return to their defaults. It cannot be undone, unless a snapshot has the state."
    ],
    button: "Reset it"
  },
  back: () => path,
  act: async (request) => {
    const data = ofForm(request, "data") === "demo" ? "demo" : "empty"
    accepted(await request.call("POST", "/reset", { data }))
    return `The server was reset; its data is ${data}.`
  }
}

const save: Action = {
  name: "save-snapshot",
  section: "scenarios",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const saved = accepted(await request.call("POST", "/snapshots", named(ofForm(request, "name"))))
    return `The snapshot ${textOf(saved["name"])} has ${Number(saved["records"]).toLocaleString("en-US")} records.`
  }
}

const restore: Action = {
  name: "restore",
  section: "scenarios",
  confirmation: {
    fields: ["name"],
    heading: (values) => `Restore the snapshot ${visible(nameOf(values))}?`,
    consequences: [
      "It replaces the whole state of this world, tokens and clock included. The journal begins anew.",
      "The present state is lost, unless a snapshot has it."
    ],
    button: "Restore it"
  },
  back: () => path,
  act: async (request) => {
    const name = nameOf(request.form)
    accepted(await request.call("POST", "/restore", { name }))
    return `The world is as the snapshot ${name}.`
  }
}

const forget: Action = {
  name: "forget-snapshot",
  section: "scenarios",
  confirmation: {
    fields: ["name"],
    heading: (values) => `Delete the snapshot ${visible(nameOf(values))}?`,
    consequences: ["Worlds that were made from it stay. It cannot be undone."],
    button: "Delete it"
  },
  back: () => path,
  act: async (request) => {
    const name = nameOf(request.form)
    accepted(await request.call("DELETE", `/snapshots/${encodeURIComponent(name)}`))
    return `The snapshot ${name} is deleted.`
  }
}

const makeWorld: Action = {
  name: "make-world",
  section: "scenarios",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const from = ofForm(request, "from")
    const made = accepted(
      await request.call("POST", "/worlds", { ...named(ofForm(request, "name")), ...(from === null ? {} : { from }) })
    )
    return `The world ${textOf(made["name"])} is at ${textOf(made["baseUrl"])}.`
  }
}

const removeWorld: Action = {
  name: "remove-world",
  section: "scenarios",
  confirmation: {
    fields: ["name"],
    heading: (values) => `Delete the world ${visible(nameOf(values))}?`,
    consequences: ["Its records, tokens and journal are removed, and its deliveries under way are cancelled."],
    button: "Delete it"
  },
  back: () => path,
  act: async (request) => {
    const name = nameOf(request.form)
    accepted(await request.call("DELETE", `/worlds/${encodeURIComponent(name)}`))
    return `The world ${name} is deleted.`
  }
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/scenarios", handle: show },
  ...[run, reset, save, restore, forget, makeWorld, removeWorld].flatMap(routesOf)
]
