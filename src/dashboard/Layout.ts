/** The frame of the dashboard's pages. */
import type { Assets } from "../web/Assets.ts"
import * as Layout from "../web/Layout.ts"
import { zoneName } from "../web/Times.ts"
import { menu } from "./Menu.ts"
import { html, type Html, type Section } from "./Page.ts"

export interface Frame extends Pick<
  Layout.Frame,
  "title" | "breadcrumbs" | "numbers" | "body" | "isLive" | "notice" | "hasMenu" | "now"
> {
  readonly section: Section | null
  /** The form token of the log-out; null without a session. */
  readonly logOutToken: string | null
  readonly version: string
  readonly assets: Assets
}

/** Ends the session of this browser, or those of all browsers. */
const logOut = (token: string): Html =>
  html`<form method="post" action="/logout" class="session">
    <input type="hidden" name="form_token" value="${token}" />
    <button type="button" popovertarget="sessions"><span>Log out</span></button>
    <div id="sessions" popover>
      <button type="submit">Log out here</button>
      <button type="submit" name="everywhere" value="yes">Log out everywhere</button>
    </div>
  </form>`

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
  /><button type="submit">Find</button>
</form>`

export const layout = ({ logOutToken, version, ...frame }: Frame): Html =>
  Layout.layout({
    ...frame,
    site: { name: "Tributary", root: "/", menu },
    tools: html`${frame.hasMenu ? recordSearch : ""} ${logOutToken === null ? "" : logOut(logOutToken)}`,
    foot: html`Tributary ${version} · Times are in <span id="zone">${zoneName}</span>`
  })
