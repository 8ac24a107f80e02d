/** `/scenarios`: the data of the server. */
import { facts, section } from "../../../../../src/web/Components.ts"
import { html } from "../../../../../src/web/Html.ts"
import type { Action } from "../Action.ts"
import { accepted, confirmLink, routesOf } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { ofForm, page, root } from "../Page.ts"

const path = `${root}/scenarios`

const show = ({ world }: PageRequest): Page =>
  page({
    title: "Scenarios",
    section: "scenarios",
    body: html`<h1>Scenarios</h1>
      ${facts([["Companies", world.store.companies().join(", ") || "none"]])}
      ${section(
        "reset",
        "Reset",
        html`<p>Removes all records, tokens, subscriptions, deliveries, faults and the journal.</p>
          <p class="buttons">
            ${confirmLink("reset", { data: "demo" }, "Reset to demo data")}
            ${confirmLink("reset", { data: "empty" }, "Reset to an empty server")}
          </p>`
      )}`
  })

const reset: Action = {
  name: "reset",
  section: "scenarios",
  confirmation: {
    fields: ["data"],
    heading: (values) => `Reset the server to ${values.get("data") === "demo" ? "demo data" : "an empty state"}?`,
    consequences: [
      "All records, tokens, subscriptions, deliveries, faults and the journal are removed.",
      "Limits, dialect and clock return to their defaults. It cannot be undone."
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

export const routes: ReadonlyArray<Route> = [{ method: "GET", path: "/scenarios", handle: show }, ...routesOf(reset)]
