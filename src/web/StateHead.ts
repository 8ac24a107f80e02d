/** The head of a page with a list: its state in one sentence, the trend of the last day, and what a person can do. */
import { badge, type Tone } from "./Components.ts"
import { html, type Html } from "./Html.ts"

export interface StateHead {
  readonly title: string
  /** What the list contains. */
  readonly about: Html | string
  /** The worst state of the list. */
  readonly tone: Tone
  readonly word: string
  /** The count, and the worst of the list. */
  readonly sentence: Html | string
  readonly actions: Html | null
  readonly trend: Html | null
}

export const stateHead = ({ title, about, tone, word, sentence, actions, trend }: StateHead): Html => html`
  <h1>${title}</h1>
  <p class="hint">${about}</p>
  <p class="summary">${badge(tone, word)} ${sentence}</p>
  ${actions === null ? "" : html`<p class="buttons">${actions}</p>`} ${trend ?? ""}
`
