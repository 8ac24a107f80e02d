/** The steps of one thing in their order, from the first to the last that happened. */
import { badge, type Tone } from "./Components.ts"
import { html, type Html } from "./Html.ts"
import { exactInstant } from "./Times.ts"

export interface Step {
  readonly title: string
  readonly tone: Tone
  /** The state of the step. */
  readonly word: string
  /** When it happened; null while it did not. */
  readonly at: Date | null
  readonly body: Html
}

/** A numbered list with a heading, a state and an instant for each step. */
export const flow = (label: string, steps: ReadonlyArray<Step>): Html =>
  html`<ol class="flow" aria-label="${label}">
    ${steps.map(
      ({ title, tone, word, at, body }) =>
        html`<li class="${tone}">
          <div class="head">
            <h2>${title} ${badge(tone, word)}</h2>
            ${at === null ? "" : html`<span class="detail">${exactInstant(at)}</span>`}
          </div>
          ${body}
        </li>`
    )}
  </ol>`
