/**
 * The frame of every page: head, menu, notice, main part and foot.
 *
 * Promise: the page works without a script. With one, only the main part changes, and the input of a person there stays.
 */
import type { Assets } from "./Assets.ts"
import { plural } from "./Escape.ts"
import { html, type Html } from "./Html.ts"
import { moving, zoneName } from "./Times.ts"

/** An entry of the menu. */
export interface MenuEntry {
  readonly section: string
  readonly path: string
  readonly text: string
  /** What the number beside it counts: one, and several; absent where it has no number. */
  readonly counted?: readonly [one: string, several: string]
}

/** A page in the path of breadcrumbs; the last one is the page itself. */
export interface Crumb {
  readonly text: string
  readonly to: string
}

/** What all pages of a server have in common. */
export interface Site {
  /** Shown first on every page and in every title. */
  readonly name: string
  /** The address of the first page. */
  readonly root: string
  readonly menu: ReadonlyArray<MenuEntry>
}

export interface Frame {
  readonly site: Site
  readonly title: string
  /** The current entry of the menu. */
  readonly section: string | null
  readonly breadcrumbs: ReadonlyArray<Crumb>
  /** The numbers of the menu by section; zero and an absent one are not shown. */
  readonly numbers: Readonly<Record<string, number>>
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
          ${frame.hasMenu ? navigation(site, frame) : ""}
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
          ${breadcrumbs(frame.breadcrumbs)} ${frame.body}
        </main>
        <footer><p>${frame.foot}</p></footer>
      </body>
    </html> `

/** The script replaces the main part by its next state, and the numbers of the menu. */
const live = html`hx-get="" hx-trigger="again" hx-target="this" hx-select="#main" hx-select-oob="#menu:morph"
hx-swap="morph:outerHTML"`

/** Opens the menu on a phone; elsewhere the menu is always open, as tabs. */
const menuButton = html`<button type="button" class="menu-button" popovertarget="menu">Menu</button>`

/** A larger number is not counted. */
export const numberMax = 99

/** The number beside an entry. Its place is kept free where there is none, so that the menu does not move. */
const numberOf = ({ section, counted }: MenuEntry, numbers: Frame["numbers"]): Html | string => {
  if (counted === undefined) return ""
  const number = numbers[section] ?? 0
  if (number === 0) return html`<span class="open"></span>`
  return number > numberMax
    ? html`<span class="open"
        ><b aria-hidden="true">${numberMax}+</b
        ><span class="visually-hidden"> more than ${numberMax} ${counted[1]}</span></span
      >`
    : html`<span class="open"
        ><b aria-hidden="true">${number}</b><span class="visually-hidden"> ${plural(number, ...counted)}</span></span
      >`
}

const navigation = ({ menu }: Site, { section, numbers }: Pick<Frame, "section" | "numbers">): Html =>
  html`<nav class="menu" id="menu" popover aria-label="Pages">
    <ul>
      ${menu.map(
        (entry) =>
          html`<li>
            <a href="${entry.path}" ${entry.section === section ? html` aria-current="page"` : ""}
              >${entry.text}${numberOf(entry, numbers)}</a
            >
          </li>`
      )}
    </ul>
  </nav>`

/** The pages above this one. On a phone the page itself is left out, since its heading follows. */
const breadcrumbs = (crumbs: ReadonlyArray<Crumb>): Html | string =>
  crumbs.length < 2
    ? ""
    : html`<nav class="breadcrumbs" aria-label="Breadcrumb">
        <ol>
          ${crumbs.map(({ text, to }, index) =>
            index === crumbs.length - 1
              ? html`<li><span aria-current="page">${text}</span></li>`
              : html`<li><a href="${to}">${text}</a></li>`
          )}
        </ol>
      </nav>`
