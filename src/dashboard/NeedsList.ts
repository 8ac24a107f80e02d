/** What needs a person: the problems of `tributary.problems`, those with one cause together, the worst first. */
import { kindTraits, type Severity } from "../status/ProblemKinds.ts"
import * as Problems from "../status/Problems.ts"
import { ago, badge, count, type Tone } from "../web/Components.ts"
import { plural, truncated, visible } from "../web/Escape.ts"
import { resourcesAddress } from "./Addresses.ts"
import { code } from "./Links.ts"
import { html, type Html } from "./Page.ts"

const whatMax = 160

export const toneOf = (severity: Severity): Tone => (severity === "critical" ? "bad" : "warn")

/** What to do, with the command. */
export const stepPart = ({ remedy, command }: Pick<Problems.Problem, "remedy" | "command">): Html =>
  html`${visible(remedy)}${command === null ? "" : html`: ${code(command)}`}`

/** The page of one problem, or the list of those of several. */
const placeOf = ({ first, problems, companies, kind }: Problems.ProblemGroup): string =>
  problems === 1 || kindTraits[kind].section !== "resources"
    ? Problems.pageOf(companies > 1 ? { ...first, company: null } : first)
    : resourcesAddress({ company: companies === 1 ? first.company : null, state: kind === "token" ? "failing" : kind })

const item = (group: Problems.ProblemGroup, now: Date): Html => {
  const { first, kind, severity, since } = group
  return html`<li class="${toneOf(severity)}">
    ${badge(toneOf(severity), kindTraits[kind].word)}
    <p>
      <strong>${visible(Problems.subjectOf(group))}</strong>:
      ${truncated(Problems.sentenceOf(first), whatMax)}${since === null ? "" : html` <span class="detail">began ${ago(since, now)}</span>`}
    </p>
    <p>
      <a class="button" href="${placeOf(group)}"
        >Show<span class="visually-hidden"> ${visible(Problems.subjectOf(group))}</span></a
      >
      ${stepPart(first)}
    </p>
  </li>`
}

/** Problems that are listed at once, and those that are listed as further ones. */
export const shownMax = 8
const furtherMax = 40

/** The list with its heading. */
export const needsPart = (groups: ReadonlyArray<Problems.ProblemGroup>, now: Date): Html => {
  const further = groups.slice(shownMax, shownMax + furtherMax)
  const left = groups.length - shownMax - further.length
  return html`<section aria-labelledby="needed">
    <h2 id="needed">What needs a person</h2>
    ${
      groups.length === 0
        ? html`<p>Nothing.</p>`
        : html`<ul class="needs-list">
            ${groups.slice(0, shownMax).map((group) => item(group, now))}
          </ul>`
    }
    ${
      further.length === 0
        ? ""
        : html`<details id="further">
            <summary>${plural(further.length + left, "further problem")}</summary>
            <ul class="needs-list">
              ${further.map((group) => item(group, now))}
            </ul>
            ${left > 0 ? html`<p>${plural(left, "further one")}: <a href="/resources">all resources, the worst first</a>.</p>` : ""}
          </details>`
    }
  </section>`
}

/** The number of each kind that has problems, and how many kinds have none. */
export const numbers = (problems: ReadonlyArray<Problems.Problem>, company: string | null): Html => {
  const all = Problems.numbersOf(problems)
  const fine = Object.keys(kindTraits).length - all.length
  return html`<ul class="numbers">
    ${all.map(({ kind, number, severity }) => {
      const { unit, section } = kindTraits[kind]
      const to =
        section === "resources"
          ? resourcesAddress({
              company,
              state: kind === "failing" || kind === "late" || kind === "blocked" ? kind : null
            })
          : Problems.pageOf({ kind, company, subject: "" })
      return html`<li class="${toneOf(severity)}">
        <a href="${to}"><strong>${count(number)}</strong> ${unit[number === 1 ? 0 : 1]}</a>
      </li>`
    })}
    <li class="zero">${plural(fine, all.length === 0 ? "check" : "other check")} fine</li>
  </ul>`
}
