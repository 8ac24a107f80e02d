/** Parts that several pages show. */
import { ago, badge, facts, none, type Tone } from "../../../../src/web/Components.ts"
import { truncated, visible } from "../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../src/web/Html.ts"
import type { Grounds } from "../grounds/Grounds.ts"
import { withoutSecrets } from "../http/journal.ts"
import type { Entry } from "../http/journal.ts"
import { printInstant } from "../time.ts"
import { root } from "./Page.ts"
import { pretty } from "./Pretty.ts"

/** Characters of a body on a page. */
const bodyMax = 20_000

/** A time of the server's clock, in microseconds. */
export const when = (micros: number | null, now: Date, never = "never"): Html =>
  ago(micros === null ? null : printInstant(micros), now, never)

const tones: Readonly<Record<string, Tone>> = { 2: "good", 3: "busy", 4: "warn", 5: "bad" }

export const statusBadge = (status: number | null): Html =>
  status === null ? badge("bad", "no answer") : badge(tones[String(status)[0]!] ?? "quiet", String(status))

/** The refusal's code and field, or the kind of the fault. */
export const reason = ({ refusal, fault, items, isReplay }: Entry): Html => html`
  ${refusal === null ? "" : html`<code>${refusal.code}</code>`}${
    refusal === null || refusal.field === null ? "" : html` <code class="field">${truncated(refusal.field, 60)}</code>`
  }${fault === null ? "" : html` ${badge("busy", `fault: ${fault}`)}`}${
    items.length === 0
      ? ""
      : html` ${badge("warn", `${items.length}${items.length === 20 ? " or more" : ""} items refused`)}`
  }${isReplay ? html` ${badge("quiet", "stored answer")}` : ""}
`

export const factLink = (id: string): Html => html`<a class="whole" href="${root}/facts/${id}">${id}</a>`

/** A text whose parts between backticks are code. */
export const prose = (text: string): Html =>
  html`${text.split("`").map((part, index) => (index % 2 === 0 ? visible(part) : html`<code>${visible(part)}</code>`))}`

const links = (ids: ReadonlyArray<string>): Html =>
  html`${ids.map((id, index) => html`${index === 0 ? "" : ", "}${factLink(id)}`)}`

/** Facts that a line names; the page of the request has all. */
const factsMax = 4

const firstOf = (ids: ReadonlyArray<string>): Html =>
  html`${links(ids.slice(0, factsMax))}${ids.length > factsMax ? html` and ${ids.length - factsMax} more` : ""}`

/** The facts behind an answer, or that it is our choice. */
export const sources = ({ facts, decisions }: Grounds): Html => html`
  ${facts.length === 0 ? html`<span class="whole">our choice</span>` : firstOf(facts)}${
    decisions.length === 0
      ? ""
      : html`<span class="detail">${facts.length === 0 ? "" : "our choice: "}${firstOf(decisions)}</span>`
  }
`

/** Bytes that were sent, without secrets; JSON on indented lines. */
export const body = (text: string | null, label: string): Html => {
  if (text === null) return html`<p>${none("no text")}</p>`
  if (text === "") return html`<p>${none("empty")}</p>`
  const safe = withoutSecrets(text)
  const shown = safe.length > bodyMax ? null : pretty(safe)
  return html`<pre class="bytes" tabindex="0" role="region" aria-label="${label}">
${shown ?? truncated(safe, bodyMax)}</pre>`
}

/** A time of the server's clock: the time of day, and how long ago it was. */
export const moment = (instant: string, now: Date): Html =>
  html`<span class="whole">${instant.slice(11, 19)}</span><span class="detail">${ago(instant, now)}</span>`

export const headerLines = (headers: Readonly<Record<string, string | undefined>>): Html => {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? html`<p>${none("no headers")}</p>`
    : facts(given.map(([name, value]) => [visible(name), html`<code>${visible(withoutSecrets(value ?? ""))}</code>`]))
}

/** An address without a password and without its query, which may have one. */
export const safeUrl = (url: string): string => {
  try {
    const { protocol, host, pathname, search, username } = new URL(url)
    return withoutSecrets(`${protocol}//${username === "" ? "" : "…@"}${host}${pathname}${search === "" ? "" : "?…"}`)
  } catch {
    return withoutSecrets(url)
  }
}

/** An input with its label. */
export const input = (
  name: string,
  label: string,
  options: {
    readonly value?: string
    readonly hint?: string
    readonly type?: string
    readonly isRequired?: boolean
    /** Default: from the name; for a page that has several fields of one name. */
    readonly id?: string
  } = {}
): Html => {
  const { value = "", hint, type = "text", isRequired = false, id = `in-${name}` } = options
  return html`<p>
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      type="${type}"
      value="${value}"
      maxlength="500"
      autocomplete="off"
      spellcheck="false"
      ${isRequired ? html` required` : ""}
      ${hint === undefined ? "" : html` aria-describedby="${id}-hint"`}
    />
    ${hint === undefined ? "" : html`<span class="detail" id="${id}-hint">${hint}</span>`}
  </p>`
}
