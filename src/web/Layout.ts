/**
 * The frame of every page: head, menu, notice, main part and foot.
 *
 * Promise: the page works without a script. With one, only the main part changes, and the input of a person there stays.
 */
import type { Assets } from "./Assets.ts"
import { html, type Html } from "./Html.ts"
import { moving, zoneName } from "./Times.ts"

/** What all pages of a server have in common. */
export interface Site {
  /** Shown first on every page and in every title. */
  readonly name: string
  /** The address of the first page. */
  readonly root: string
  readonly menu: ReadonlyArray<readonly [section: string, path: string, text: string]>
}

export interface Frame {
  readonly site: Site
  readonly title: string
  /** The current entry of the menu. */
  readonly section: string | null
  readonly body: Html
  readonly isLive: boolean
  /** The result of an action; shown once. */
  readonly notice: string | null
  /** Beside the name of the site; null: nothing. */
  readonly tools: Html | null
  readonly hasMenu: boolean
  readonly foot: Html | string
  /** The time of the page by the clock of its data, from which the browser keeps ages moving; null: they stay. */
  readonly now: Date | null
  readonly assets: Assets
}

/** Settings of htmx without inline styles, inline scripts and `eval`: the content security policy forbids them. */
const htmxConfiguration = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  selfRequestsOnly: true,
  historyEnabled: false,
  // Longer than a page waits for a warehouse that does not answer.
  timeout: 30_000,
  responseHandling: [
    { code: "(204|304)", swap: false },
    { code: "...", swap: true }
  ]
})

export const layout = ({ site, assets, ...frame }: Frame): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="htmx-config" content="${htmxConfiguration}" />
        <meta name="assets" content="${assets.version}" />
        <title>${frame.title} · ${site.name}</title>
        <link rel="icon" href="${assets.path("icon.svg")}" />
        <link rel="stylesheet" href="${assets.path("pages.css")}" />
        <script defer src="${assets.path("htmx.js")}"></script>
        <script defer src="${assets.path("idiomorph.js")}"></script>
        <script defer src="${assets.path("live.js")}"></script>
      </head>
      <body hx-ext="morph">
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <div class="top">
            <a class="brand" href="${site.root}">${site.name}</a> ${frame.tools ?? ""}
            ${frame.hasMenu ? menuButton : ""}
          </div>
          ${frame.hasMenu ? navigation(site, frame.section) : ""}
        </header>
        <div id="notice" role="status"></div>
        ${frame.notice === null ? "" : html`<div class="said" role="status"><p>${frame.notice}</p></div>`}
        <main
          id="main"
          tabindex="-1"
          data-zone="${zoneName}"
          ${frame.now === null ? "" : html`data-now="${moving(frame.now.toISOString())}"`}
          ${frame.isLive ? live : ""}
        >
          ${frame.body}
        </main>
        <footer><p>${frame.foot}</p></footer>
      </body>
    </html> `

/** The script replaces the main part by its next state. */
const live = html`hx-get="" hx-trigger="again" hx-target="this" hx-select="#main" hx-swap="morph:outerHTML"`

/** Opens the menu on a phone; elsewhere the menu is always open, as tabs. */
const menuButton = html`<button type="button" class="menu-button" popovertarget="menu">Menu</button>`

const navigation = ({ menu }: Site, current: string | null): Html =>
  html`<nav class="menu" id="menu" popover aria-label="Pages">
    <ul>
      ${menu.map(
        ([section, path, text]) =>
          html`<li><a href="${path}" ${section === current ? html` aria-current="page"` : ""}>${text}</a></li>`
      )}
    </ul>
  </nav>`
