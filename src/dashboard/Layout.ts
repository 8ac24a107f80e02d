/**
 * The frame of every page: head, menu, notice, main part and foot.
 *
 * Promise: the page works without a script. With one, only the main part changes, and the input of a person there stays.
 */
import type { Assets } from "./Assets.ts"
import { html, type Html, type Section } from "./Page.ts"

export interface Frame {
  readonly title: string
  readonly section: Section | null
  readonly body: Html
  readonly isLive: boolean
  /** The result of an action; shown once. */
  readonly notice: string | null
  /** The form token of the log-out; null without a session. */
  readonly logOutToken: string | null
  readonly hasMenu: boolean
  readonly version: string
  readonly assets: Assets
}

const menu: ReadonlyArray<readonly [section: Section, path: string, text: string]> = [
  ["overview", "/", "Overview"],
  ["runs", "/runs", "Runs"],
  ["budget", "/budget", "Budget"],
  ["webhooks", "/webhooks", "Webhooks"],
  ["outbox", "/outbox", "Outbox"],
  ["endpoints", "/endpoints", "Endpoints"],
  ["quarantine", "/quarantine", "Quarantine"],
  ["invariants", "/invariants", "Invariants"],
  ["records", "/records", "Records"]
]

/** Settings of htmx without inline styles, inline scripts and `eval`: the content security policy forbids them. */
const htmxConfiguration = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  historyEnabled: false,
  timeout: 20_000,
  responseHandling: [
    { code: "(204|304)", swap: false },
    { code: "...", swap: true }
  ]
})

export const layout = (frame: Frame): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="htmx-config" content="${htmxConfiguration}" />
        <meta name="assets" content="${frame.assets.version}" />
        <title>${frame.title} · Tributary</title>
        <link rel="icon" href="${frame.assets.path("icon.svg")}" />
        <link rel="stylesheet" href="${frame.assets.path("pages.css")}" />
        <script defer src="${frame.assets.path("htmx.js")}"></script>
        <script defer src="${frame.assets.path("idiomorph.js")}"></script>
        <script defer src="${frame.assets.path("live.js")}"></script>
      </head>
      <body hx-ext="morph">
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
          <a class="brand" href="/">Tributary</a>
          ${frame.hasMenu ? html`${navigation(frame.section)} ${recordSearch}` : ""}
          ${
            frame.logOutToken === null
              ? ""
              : html`<form method="post" action="/logout">
                  <input type="hidden" name="form_token" value="${frame.logOutToken}" /><button
                    type="submit"
                    class="quiet"
                  >
                    Log out</button
                  ><button type="submit" class="quiet" name="everywhere" value="yes">Log out everywhere</button>
                </form>`
          }
        </header>
        <div id="notice" role="status"></div>
        ${frame.notice === null ? "" : html`<div class="said" role="status"><p>${frame.notice}</p></div>`}
        ${frame.isLive ? live(frame.body) : html`<main id="main" tabindex="-1">${frame.body}</main>`}
        <footer><p>Tributary ${frame.version} · times are in UTC</p></footer>
      </body>
    </html> `

/** Finds a record by number, code or external id, from every page. */
const recordSearch = html`<form method="get" action="/records" class="find" role="search" aria-label="Find a record">
  <label class="visually-hidden" for="find">Number, code or external id of a record</label>
  <input
    type="search"
    id="find"
    name="q"
    placeholder="Find a record"
    required
    maxlength="200"
    autocomplete="off"
    autocapitalize="none"
    spellcheck="false"
  /><button type="submit" class="quiet">Find</button>
</form>`

const live = (body: Html): Html =>
  html`<main
    id="main"
    tabindex="-1"
    hx-get=""
    hx-trigger="again"
    hx-target="this"
    hx-select="#main"
    hx-swap="morph:outerHTML"
  >
    ${body}
  </main>`

const navigation = (current: Section | null): Html =>
  html`<nav aria-label="Pages">
    <ul>
      ${menu.map(
        ([section, path, text]) =>
          html`<li><a href="${path}" ${section === current ? html` aria-current="page"` : ""}>${text}</a></li>`
      )}
    </ul>
  </nav>`
