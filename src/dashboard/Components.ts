/**
 * What pages are made of. Each part is plain HTML that works without a script, can be read aloud and fits a phone.
 */
import { html, type Html, type FormAccess } from "./Page.ts"

/** How well something is. Told by a word and a sign, never by colour alone. */
export type Tone = "good" | "warn" | "bad" | "busy" | "quiet"

/** A state as a badge. */
export const badge = (tone: Tone, text: string): Html => html`<span class="badge ${tone}">${text}</span>`

/** An instant, to be read as "3 min ago" with the whole of it as a title; `never` where there is none. */
export const ago = (at: Date | null, now: Date, never = "never"): Html =>
  at === null
    ? html`<span class="none">${never}</span>`
    : html`<time datetime="${at.toISOString()}" title="${at.toISOString()}"
        >${span(now.getTime() - at.getTime())}</time
      >`

/** A length of time in one unit: `45 s`, `12 min`, `3 h`, `5 d`; what lies ahead reads `in 12 min`. */
const span = (ms: number): string => {
  const text = duration(Math.abs(ms))
  return ms < 0 ? `in ${text}` : `${text} ago`
}

/** A length of time in one unit. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 90_000) return `${Math.round(ms / 1_000)} s`
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 36 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

/** A whole number with its thousands apart. */
export const count = (value: number | bigint): string => value.toLocaleString("en-US")

/** A page that asks before something is done: what will happen, a button that does it, a way back. */
export interface Confirmation {
  readonly title: string
  /** What will happen, and what not; one sentence a line. */
  readonly consequences: ReadonlyArray<string>
  /** Where the form goes. */
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  /** Inputs of the form, where something is to be filled in. */
  readonly inputs?: Html
  readonly button: string
  readonly back: string
}

export const confirmation = (access: FormAccess, ask: Confirmation): Html => html`
  <h1>${ask.title}</h1>
  ${ask.consequences.map((sentence) => html`<p>${sentence}</p>`)}
  ${form(
    access,
    ask.action,
    html`
      ${Object.entries(ask.fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
      ${ask.inputs ?? ""}
      <p class="buttons">
        <button type="submit" class="primary">${ask.button}</button> <a class="button" href="${ask.back}">Cancel</a>
      </p>
    `
  )}
  ${access._tag === "Reading" ? html`<p class="buttons"><a class="button" href="${ask.back}">Back</a></p>` : ""}
`

/** A form that changes something, or why there is none. */
export const form = (access: FormAccess, action: string, fields: Html): Html =>
  access._tag === "Reading"
    ? html`<p class="problem" role="note">${access.reason}</p>`
    : html`<form method="post" action="${action}">
        <input type="hidden" name="form_token" value="${access.formToken}" />${fields}
      </form>`

/** A column of a table: its heading, and whether it holds numbers, which stand to the right. */
export interface TableColumn {
  readonly heading: string
  readonly isNumber?: boolean
}

/**
 * A table in a box of its own, which scrolls where the table is wider than the screen and can be reached by keyboard for
 * that; on a phone each row is a card. The first cell of each row names it. Its roles are said, because browsers forget
 * them where a style shows a table as something else.
 */
export const table = (
  caption: string,
  columns: ReadonlyArray<TableColumn>,
  rows: ReadonlyArray<ReadonlyArray<Html | string>>
): Html => html`
  <div class="table" role="region" aria-label="${caption}" tabindex="0">
    <table role="table">
      <caption>
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(({ heading, isNumber }) => html`<th scope="col" role="columnheader" class="${isNumber === true ? "number" : ""}">${heading}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (cells) =>
            html`<tr role="row">
              ${cells.map((cell, index) => {
                const { heading, isNumber } = columns[index] ?? { heading: "" }
                const kind = isNumber === true ? "number" : ""
                return index === 0
                  ? html`<th scope="row" role="rowheader" class="${kind}">${cell}</th>`
                  : html`<td role="cell" data-heading="${heading}" class="${kind}">${cell}</td>`
              })}
            </tr>`
        )}
      </tbody>
    </table>
  </div>
`
