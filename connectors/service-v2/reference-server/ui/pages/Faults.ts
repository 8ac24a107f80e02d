/** `/faults`: the armed faults, and a form for one more. */
import { badge, count, none, section, table } from "../../../../../src/web/Components.ts"
import { plural, truncated } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import type { Armed } from "../../http/faults.ts"
import type { Action } from "../Action.ts"
import { accepted, confirmLink, form, routesOf, textOf } from "../Action.ts"
import { formFields, itemFieldsOf, valueOf } from "../Fields.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { ofForm, page, PageError, root } from "../Page.ts"

const path = `${root}/faults`
const fields = itemFieldsOf("POST", "/faults", "rules")
/** Members that a form of one line each cannot hold. */
const omitted = new Set(["headers"])

const details = ({ status, code, ms, bytes, headers, body, kind }: Armed["fault"]): Html => {
  const parts = [
    status === null ? null : `status ${status}`,
    code,
    kind === "delay" || kind === "slowBody" ? `${ms} ms` : null,
    bytes === null ? null : plural(bytes, "byte"),
    headers === null ? null : plural(Object.keys(headers).length, "header"),
    body === null ? null : "a body of its own"
  ].filter((part) => part !== null)
  return parts.length === 0 ? none("default") : html`${truncated(parts.join(", "), 120)}`
}

/** The path of a rule as it was given. */
const globOf = ({ source }: RegExp): string =>
  source
    .replace(/^\^|\$$/g, "")
    .replaceAll(".*", "*")
    .replace(/\\(.)/g, "$1")

const row = ({ fault, seen, fired }: Readonly<Armed>): ReadonlyArray<Html | string> => [
  badge("busy", fault.kind),
  html`<code
    >${fault.method ?? "any method"} ${truncated(fault.path === null ? "any path" : globOf(fault.path), 80)}</code
  >`,
  details(fault),
  html`${fault.after === 0 ? "" : html`<span class="line">after ${plural(fault.after, "request")}</span>`}${
    fault.times === null ? "" : html`<span class="line">at most ${plural(fault.times, "time")}</span>`
  }${fault.rate === 1 ? "" : html`<span class="line">with probability ${fault.rate}</span>`}${
    fault.after === 0 && fault.times === null && fault.rate === 1 ? "always" : ""
  }`,
  count(seen),
  count(fired)
]

const show = (request: PageRequest): Page => {
  const armed = request.world.faults.all()
  const formed = fields.filter(({ name }) => !omitted.has(name))
  return page({
    title: "Faults",
    section: "faults",
    body: html`<h1>Faults</h1>
      <p>
        The first rule that fires hits a request. Which one depends only on the rules, the seed and the order of
        requests.
      </p>
      ${
        armed.length === 0
          ? html`<p class="note">No fault is armed: every request gets its regular answer.</p>`
          : html`${table("Armed faults, in their order", "Kind, Requests, Effect, When, #Matched, #Fired", armed.map(row))}
              <p class="buttons">
                ${confirmLink("clear-faults", {}, "Clear all faults")}
                <a class="button" href="${root}/requests?status=with+a+fault">Requests with a fault</a>
              </p>`
      }
      ${section(
        "add",
        "Add a fault",
        form(
          request,
          "add-fault",
          html`${formFields(formed, (name) => (name === "kind" ? "status" : name === "times" ? "1" : ""))}
            <p class="buttons"><button type="submit" class="primary">Add</button></p>`,
          "Add a fault"
        )
      )}`
  })
}

const add: Action = {
  name: "add-fault",
  section: "faults",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const given = fields
      .map((field) => [field.name, ofForm(request, field.name), field] as const)
      .filter(([, text]) => text !== null)
      .map(([name, text, field]) => [
        name,
        valueOf(name === "code" && /^\d{3}$/.test(text!) ? { ...field, isText: false } : field, text)
      ])
    if (given.length === 0) throw new PageError(400, "A fault needs a kind.")
    const { rules } = accepted(await request.call("POST", "/faults", { rules: [Object.fromEntries(given)], add: true }))
    return `The fault is armed; there are ${textOf(rules)} now.`
  }
}

const clear: Action = {
  name: "clear-faults",
  section: "faults",
  confirmation: {
    fields: [],
    heading: () => "Clear all faults?",
    consequences: ["All rules and their counts are removed. Requests get their regular answers."],
    button: "Clear them"
  },
  back: () => path,
  act: async (request) => {
    accepted(await request.call("DELETE", "/faults"))
    return "No fault is armed any more."
  }
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/faults", handle: show },
  ...routesOf(add),
  ...routesOf(clear)
]
