/** The steps of one thing in their order, from the first to the last that happened. */
import { badge, duration, type Tone } from "./Components.ts"
import { html, type Html } from "./Html.ts"
import { exactInstant } from "./Times.ts"

export interface Step {
  readonly title: string
  readonly tone: Tone
  /** The state of the step; null where its title says it. */
  readonly word: string | null
  /** When it happened; null while it did not. */
  readonly at: Date | null
  readonly body: Html
}

/** The time since the last step before it that has an instant; null without one. */
const sinceOf = (steps: ReadonlyArray<Step>, index: number): number | null => {
  const before = steps.slice(0, index).findLast(({ at }) => at !== null)?.at
  const at = steps[index]!.at
  return before === undefined || before === null || at === null ? null : at.getTime() - before.getTime()
}

/** A numbered list with a heading, a state, an instant and the time since the step before for each step. */
export const flow = (label: string, steps: ReadonlyArray<Step>): Html =>
  html`<ol class="flow" aria-label="${label}">
    ${steps.map(({ title, tone, word, at, body }, index) => {
      const sinceMs = sinceOf(steps, index)
      return html`<li class="${tone}">
        <div class="head">
          <h2>${title}${word === null ? "" : html` ${badge(tone, word)}`}</h2>
          ${at === null ? "" : html`<span class="detail">${exactInstant(at)}${sinceMs === null || sinceMs < 0 ? "" : ` · + ${duration(sinceMs)}`}</span>`}
        </div>
        ${body}
      </li>`
    })}
  </ol>`
