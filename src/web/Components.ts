/** The parts of pages: plain HTML that works without a script, can be read aloud and fits a phone. */
import { count } from "../text/Count.ts"
import { duration } from "../text/Duration.ts"
import { visible } from "./Escape.ts"
import { html, type Html } from "./Html.ts"
import { moving, timeElement } from "./Times.ts"

/** The rating of a state, shown by a word and a sign, never by colour alone. */
export type Tone = "good" | "warn" | "bad" | "busy" | "quiet"

/** A state as a badge. */
export const badge = (tone: Tone, text: string): Html => html`<span class="badge ${tone}">${text}</span>`

/** An instant as "3 min ago" or "in 3 min"; the page keeps it moving. Its exact time is shown as of any `time` element. */
export const ago = (instant: Date | string | null, now: Date, never = "never"): Html => {
  if (instant === null) return html`<span class="none">${never}</span>`
  const ms = now.getTime() - new Date(instant).getTime()
  const text = duration(Math.abs(ms))
  return timeElement(instant, moving(ms < 0 ? `in ${text}` : `${text} ago`))
}

export { count, duration }

// Made once: each call of `toLocaleString` with options makes a format of its own.
const oneDecimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 })

/** A number with one decimal at most. */
export const decimal = (value: number): string => oneDecimal.format(value)

/** How a table is sorted by a column, and the address of the same table, sorted by it or the other way round. */
export interface Sorting {
  readonly to: string
  readonly direction: "ascending" | "descending" | null
}

const signs = { ascending: "▲", descending: "▼" } as const

/** The attribute of a cell's kind. */
const classOf = (kind: string): Html | string => (kind === "" ? "" : html` class="${kind}"`)

const columnHead = (heading: string, kind: string, sorting: Sorting | undefined): Html =>
  sorting === undefined
    ? html`<th scope="col" role="columnheader" ${classOf(kind)}>${heading}</th>`
    : html`<th
        scope="col"
        role="columnheader"
        ${classOf(kind)}${sorting.direction === null ? "" : html` aria-sort="${sorting.direction}"`}
      >
        <a href="${sorting.to}"
          >${heading}${sorting.direction === null ? "" : html` <span aria-hidden="true">${signs[sorting.direction]}</span>`}</a
        >
      </th>`

/**
 * A table in a box that scrolls, also by keyboard, where the table is wider than the screen; on a phone each row is a card.
 * `headings` is separated by commas; `#` marks a column of numbers, and `-` before that a column that a phone leaves out.
 * The first cell of a row names it. The roles are explicit, because browsers drop them where a style displays a table as
 * something else. A heading in `sortings` is a link that sorts the table.
 */
export const table = (
  caption: string,
  headings: string,
  rows: ReadonlyArray<ReadonlyArray<Html | string>>,
  sortings: Readonly<Record<string, Sorting>> = {}
): Html => {
  const columns = headings.split(", ").map((text) => ({
    heading: text.replace(/^-?#?/, ""),
    kind: [text.startsWith("-") ? "wide" : "", /^-?#/.test(text) ? "number" : ""].join(" ").trim()
  }))
  return html`
    <div class="table" role="region" aria-label="${caption}" tabindex="0">
      <table role="table">
        <caption>
          ${caption}
        </caption>
        <thead role="rowgroup">
          <tr role="row">
            ${columns.map(({ heading, kind }) => columnHead(heading, kind, sortings[heading]))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${rows.map(
            (cells) =>
              html`<tr role="row">
                ${cells.map((cell, index) => {
                  const { heading, kind } = columns[index]!
                  return index === 0
                    ? html`<th scope="row" role="rowheader" ${classOf(kind)}>${cell}</th>`
                    : html`<td role="cell" data-heading="${heading}" ${classOf(kind)}>${cell}</td>`
                })}
              </tr>`
          )}
        </tbody>
      </table>
    </div>
  `
}

/** A part of a page under its heading. */
export const section = (id: string, heading: Html | string, body: Html): Html =>
  html`<section aria-labelledby="${id}">
    <h2 id="${id}">${heading}</h2>
    ${body}
  </section>`

/** A value that is absent. */
export const none = (text: string): Html => html`<span class="none">${text}</span>`

/** More values than this are no list to choose from. */
const choicesMax = 100

/** A choice of a form; an empty value is `any`, if there is one. Where there are many values, it is a field for one of them. */
export const select = (
  name: string,
  label: string,
  any: string | null,
  values: ReadonlyArray<string>,
  chosen: string | null,
  hint?: string
): Html => {
  const described = hint === undefined ? "" : html` aria-describedby="${name}-hint"`
  return html`<p>
    <label for="${name}">${label}</label>
    ${
      values.length > choicesMax
        ? html`<input
            type="search"
            id="${name}"
            name="${name}"
            value="${chosen ?? ""}"
            placeholder="${any ?? ""}"
            maxlength="200"
            ${described}
          />`
        : html`<select id="${name}" name="${name}" ${described}>
            ${any === null ? "" : html`<option value="">${any}</option>`}
            ${values.map(
              (value) =>
                html`<option value="${value}" ${value === chosen ? html` selected` : ""}>${visible(value)}</option>`
            )}
          </select>`
    }
    ${hint === undefined ? "" : html`<span class="detail" id="${name}-hint">${hint}</span>`}
  </p>`
}

/** A choice of what a page shows; each is a link. */
export const filterLinks = (
  label: string,
  links: ReadonlyArray<{ readonly to: string; readonly text: Html | string; readonly isCurrent: boolean }>
): Html =>
  html`<nav class="filters" aria-label="${label}">
    ${links.map(({ to, text, isCurrent }) => html`<a href="${to}" ${isCurrent ? html` aria-current="true"` : ""}>${text}</a> `)}
  </nav>`

/** The rows that are shown of one more, and the id after which the list continues; null at its end. */
export const partOf = <Row extends { readonly id: bigint }>(rows: ReadonlyArray<Row>, rowsMax: number) => {
  const shown = rows.slice(0, rowsMax)
  return { shown, next: rows.length > rowsMax ? (shown.at(-1)?.id ?? null) : null }
}

/** Links to the beginning of a list, and to the part that follows the shown one. */
export const pager = <Place>(
  label: string,
  [first, further]: readonly [first: string, further: string],
  { after, next }: { readonly after: Place | null; readonly next: Place | null },
  addressAfter: (place: Place | null) => string
): Html =>
  html`<nav class="pages" aria-label="${label}">
    ${after === null ? "" : html`<a href="${addressAfter(null)}">${first}</a>`}
    ${next === null ? "" : html`<a href="${addressAfter(next)}" rel="next">${further}</a>`}
  </nav>`

export type Fact = readonly [term: string, fact: Html | string]

/** A list of terms and values; null ones are left out. */
export const facts = (pairs: ReadonlyArray<Fact | null>): Html =>
  html`<dl class="facts">
    ${pairs.map((pair) =>
      pair === null
        ? ""
        : html`<div>
            <dt>${pair[0]}</dt>
            <dd>${pair[1]}</dd>
          </div>`
    )}
  </dl>`

/** A problem with what a person does about it, and the buttons for that. */
export const problem = (
  what: Html | string,
  remedy: Html | string | null,
  buttons: Html | null = null,
  kind: "problem" | "problem warn" | "note" = "problem"
): Html =>
  html`<div class="${kind}">
    <p>${what}</p>
    ${remedy === null ? "" : html`<p><strong>What to do:</strong> ${remedy}</p>`}
    ${buttons === null ? "" : html`<p class="buttons">${buttons}</p>`}
  </div>`

/** A link that looks like a button. */
export const buttonLink = (to: string, text: Html | string): Html => html`<a class="button" href="${to}">${text}</a>`

/** A long part of a page. A phone shows its summary alone until a person opens it. */
export const fold = (id: string, summary: Html | string, body: Html): Html =>
  html`<details class="fold" id="${id}">
    <summary>${summary}</summary>
    ${body}
  </details>`

const units = ["bytes", "KB", "MB", "GB", "TB"] as const

/** `12.3 MB`. */
export const bytes = (value: number): string => {
  const index = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3))
  return index === 0 ? `${count(value)} bytes` : `${(value / 1000 ** index).toFixed(1)} ${units[index]}`
}
