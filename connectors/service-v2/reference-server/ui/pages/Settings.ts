/** `/settings`: the limits of the service, its dialect, and the settings of the companies. */
import { badge, none, section, table } from "../../../../../src/web/Components.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { plainDialect } from "../../http/dialect.ts"
import { plainLimits } from "../../Limits.ts"
import type { Action } from "../Action.ts"
import { accepted, form, routesOf, textOf } from "../Action.ts"
import { changedValues, fieldsOf, formFields, type FormField } from "../Fields.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { page, root } from "../Page.ts"

const path = `${root}/settings`

type Settings = Readonly<Record<string, unknown>>

const shown = (value: unknown): string => (value === null || value === undefined ? "" : textOf(value))

const changes = (present: Settings, plain: Settings): ReadonlyArray<string> =>
  Object.keys(present).filter((name) => present[name] !== plain[name])

const part = (
  request: PageRequest,
  parts: {
    readonly id: string
    readonly title: string
    readonly about: string
    readonly fields: ReadonlyArray<FormField>
    readonly present: Settings
    readonly plain: Settings
  }
): Html => {
  const { id, title, about, fields, present, plain } = parts
  const changed = changes(present, plain)
  return section(
    id,
    title,
    html`<p>${about}</p>
      <p>
        ${
          changed.length === 0
            ? badge("good", "as documented or decided")
            : html`${badge("warn", "changed")}
              ${changed.map((name) => html`<code>${name} ${shown(present[name]) || "null"}</code> `)}`
        }
      </p>
      <details id="${id}-form" ${changed.length === 0 ? "" : html` open`}>
        <summary>Change ${title.toLowerCase()}</summary>
        ${form(
          request,
          id,
          html`${formFields(fields, (name) => shown(present[name]))}
            <p class="buttons"><button type="submit" class="primary">Change</button></p>`,
          `Change ${title.toLowerCase()}`
        )}
      </details>`
  )
}

const companies = ({ world }: PageRequest): Html =>
  table(
    "Settings of the companies",
    "Company, Unlicensed, Record limits, Closed through",
    world.store.companies().map((company) => {
      const { unlicensed, recordLimits, closedThrough } = world.settingsOf(company)
      return [
        String(company),
        unlicensed.size === 0 ? none("none") : [...unlicensed].join(", "),
        recordLimits.size === 0
          ? none("none")
          : [...recordLimits].map(([name, limit]) => `${name} ${limit}`).join(", "),
        closedThrough ?? none("open")
      ]
    })
  )

const limitFields = fieldsOf("PUT", "/limits")
const switches = fieldsOf("PUT", "/dialect")

const show = (request: PageRequest): Page =>
  page({
    title: "Settings",
    section: "settings",
    body: html`<h1>Settings</h1>
      ${part(request, {
        id: "limits",
        title: "Limits",
        about: "Requests, delivery attempts and their times.",
        fields: limitFields,
        present: { ...request.world.limits },
        plain: { ...plainLimits }
      })}
      ${part(request, {
        id: "dialect",
        title: "Dialect",
        about: "Other readings of the documents, where they leave the answer open.",
        fields: switches,
        present: { ...request.world.dialect },
        plain: { ...plainDialect }
      })}
      ${section(
        "companies",
        "Companies",
        html`<p>
            Licences, record limits and closed periods; <code>PUT /companies/{id}</code> of the control plane changes
            them.
          </p>
          ${request.world.store.companies().length === 0 ? html`<p class="note">No company exists yet.</p>` : companies(request)}`
      )}`
  })

const change = (
  id: "limits" | "dialect",
  fields: ReadonlyArray<FormField>,
  present: (request: PageRequest) => Settings
): Action => ({
  name: id,
  section: "settings",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const values = changedValues(request, fields, present(request))
    const names = Object.keys(values)
    if (names.length === 0) return "Nothing was changed."
    accepted(await request.call("PUT", `/${id}`, values))
    return `Changed: ${names.join(", ")}.`
  }
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/settings", handle: show },
  ...routesOf(change("limits", limitFields, ({ world }) => ({ ...world.limits }))),
  ...routesOf(change("dialect", switches, ({ world }) => ({ ...world.dialect })))
]
