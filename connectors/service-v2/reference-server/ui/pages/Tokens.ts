/**
 * `/tokens`: the tokens.
 *
 * Promise: the server stores only the hash of a token. Its text is on one page only, the answer that issues it.
 */
import { badge, section, table } from "../../../../../src/web/Components.ts"
import { plural, truncated, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import type { Token } from "../../http/tokens.ts"
import { microsPerSecond } from "../../time.ts"
import type { Action } from "../Action.ts"
import { accepted, confirmLink, form, routesOf, textOf } from "../Action.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { numberOf, ofForm, page, PageError, root } from "../Page.ts"
import { input, when } from "../Parts.ts"

const path = `${root}/tokens`
const tokensShown = 500

const state = ({ revoked, expires, active, supervisor, userCompany, company }: Token, now: Date): Html => {
  if (revoked) return badge("bad", "revoked")
  if (expires !== null && now.getTime() * (microsPerSecond / 1000) >= expires) return badge("bad", "expired")
  if (!active) return badge("warn", "user inactive")
  return supervisor && userCompany === company ? badge("good", "valid") : badge("warn", "no supervisor here")
}

const scopes = ({ scopes: all }: Token, everything: number): Html | string =>
  all.size === everything
    ? "all"
    : all.size <= 3
      ? html`${[...all].map((scope) => html`<code class="line">${visible(scope)}</code>`)}`
      : html`<details>
          <summary>${plural(all.size, "scope")}</summary>
          ${[...all].map((scope) => html`<code class="line">${visible(scope)}</code>`)}
        </details>`

const row = (token: Token, everything: number, now: Date): ReadonlyArray<Html | string> => [
  html`<a id="token-${token.id}" href="${root}/requests?token=${token.id}">${token.id}</a>`,
  String(token.company),
  truncated(token.login, 60),
  scopes(token, everything),
  state(token, now),
  when(token.expires, now, "never"),
  html`${when(token.lastUsed, now)}${token.lastAddress === null ? "" : html`<span class="detail">${visible(token.lastAddress)}</span>`}`,
  token.revoked ? "" : confirmLink("revoke-token", { token: String(token.id) }, "Revoke", `token ${token.id}`)
]

const issueForm = (request: PageRequest): Html =>
  form(
    request,
    "issue-token",
    html`<div class="ask">
        ${input("company", "Company", { value: "1", isRequired: true })}
        ${input("scopes", "Scopes", { value: "*", hint: "orders:read, orders:write, or * for all", isRequired: true })}
        ${input("user", "User", { hint: "login; default api" })}
        ${input("expires", "Expires", { hint: "2026-12-31T00:00:00Z; empty: never" })}
      </div>
      <p class="buttons"><button type="submit" class="primary">Issue a token</button></p>`,
    "Issue a token"
  )

const list = (request: PageRequest): Page => {
  const { world, now } = request
  const tokens = world.tokens.all()
  const everything = world.store.catalogue.areas.length * 3
  const shown = tokens.slice(-tokensShown).toReversed()
  return page({
    title: "Tokens",
    section: "tokens",
    body: html`<h1>Tokens</h1>
      <p>
        ${plural(tokens.length, "token")}. The server keeps only their
        hashes${tokens.length > shown.length ? `; the newest ${shown.length} are shown` : ""}. The number opens the
        requests of a token.
      </p>
      ${
        shown.length === 0
          ? html`<p class="note">No token was issued yet.</p>`
          : table(
              "Tokens, newest first",
              "Number, Company, User, Scopes, State, Expires, Last used, Action",
              shown.map((token) => row(token, everything, now))
            )
      }
      ${section("new-token", "New token", issueForm(request))}`
  })
}

const issue: Action = {
  name: "issue-token",
  section: "tokens",
  confirmation: null,
  back: () => path,
  act: async (request) => {
    const company = numberOf(ofForm(request, "company"), "A company")
    if (company === null) throw new PageError(400, "A token needs a company.")
    const user = ofForm(request, "user")
    const expires = ofForm(request, "expires")
    const issued = accepted(
      await request.call("POST", "/tokens", {
        company,
        scopes: (ofForm(request, "scopes") ?? "").split(/[\s,]+/).filter((scope) => scope !== ""),
        ...(user === null ? {} : { user }),
        ...(expires === null ? {} : { expires })
      })
    )
    return page({
      title: "New token",
      section: "tokens",
      body: html`<h1>Token ${textOf(issued["tokenid"])}</h1>
        <p class="solved" role="status">Copy it now: no other page and no other answer shows it.</p>
        <pre tabindex="0" role="region" aria-label="The token">${textOf(issued["token"])}</pre>
        <p>Send it as <code>Authorization: Bearer …</code> with every request.</p>
        <p class="buttons"><a class="button" href="${path}">All tokens</a></p>`
    })
  }
}

const tokenOf = (values: URLSearchParams) => numberOf(values.get("token"), "The number of a token") ?? 0

const revoke: Action = {
  name: "revoke-token",
  section: "tokens",
  confirmation: {
    fields: ["token"],
    heading: (values) => `Revoke token ${tokenOf(values)}?`,
    consequences: [
      "Its next request is refused with 401 token_revoked (AUTH-04, AUTH-13), and its subscriptions get no more events.",
      "It cannot be undone; issue a new token instead."
    ],
    button: "Revoke it"
  },
  back: () => path,
  act: async (request) => {
    const tokenid = tokenOf(request.form)
    accepted(await request.call("POST", "/tokens/revoke", { tokenid }))
    return `Token ${tokenid} is revoked.`
  }
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/tokens", handle: list },
  ...routesOf(issue),
  ...routesOf(revoke)
]
