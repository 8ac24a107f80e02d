/** The list of what needs a person. */
import { ago, badge } from "../web/Components.ts"
import { plural, truncated, visible } from "../web/Escape.ts"
import { kinds, type Need } from "./Needs.ts"
import { html, type Html } from "./Page.ts"

const problemMax = 160

const item = (need: Need, now: Date): Html => {
  const [tone, word] = kinds[need.kind]
  return html`<li class="${tone}">
    ${badge(tone, word)}
    <p>
      <strong>${need.subject}</strong>:
      ${truncated(need.problem, problemMax)}${need.since === null ? "" : html` <span class="detail">began ${ago(need.since, now)}</span>`}
    </p>
    <p>Next: <a href="${need.next.to}">${visible(need.next.text)}</a></p>
  </li>`
}

/** Problems that are listed at once, and those that are listed as further ones. */
const shownMax = 8
const furtherMax = 40

/** The list with its heading. */
export const needsPart = (needs: ReadonlyArray<Need>, now: Date): Html => {
  const further = needs.slice(shownMax, shownMax + furtherMax)
  const left = needs.length - shownMax - further.length
  return html`<section aria-labelledby="needed">
    <h2 id="needed">What needs a person</h2>
    ${
      needs.length === 0
        ? html`<p>Nothing.</p>`
        : html`<ul class="needs-list">
            ${needs.slice(0, shownMax).map((need) => item(need, now))}
          </ul>`
    }
    ${
      further.length === 0
        ? ""
        : html`<details id="further">
            <summary>${plural(further.length + left, "further problem")}</summary>
            <ul class="needs-list">
              ${further.map((need) => item(need, now))}
            </ul>
            ${left > 0 ? html`<p>${plural(left, "further one")}: <a href="/resources">all resources, the worst first</a>.</p>` : ""}
          </details>`
    }
  </section>`
}
