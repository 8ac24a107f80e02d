/** The choices above a list: its state, its company, its time. Each keeps the others. */
import { detailedMax } from "../status/CompanyStates.ts"
import { filterLinks, select } from "../web/Components.ts"
import { address, visible } from "../web/Escape.ts"
import { html, type Html } from "./Page.ts"

type Query = Readonly<Record<string, string | null>>

/** The fields of a form that keep the other choices. */
export const hiddenFields = (query: Query, name?: string): ReadonlyArray<Html> =>
  Object.entries(query).flatMap(([key, value]) =>
    key === name || value === null ? [] : [html`<input type="hidden" name="${key}" value="${value}" />`]
  )

/** A choice among a few values as links; null is any. */
export const choiceLinks = <A extends string>(
  label: string,
  path: string,
  query: Query,
  name: string,
  choices: ReadonlyArray<readonly [value: A | null, text: Html | string]>
): Html =>
  filterLinks(
    label,
    choices.map(([value, text]) => ({
      to: address(path, { ...query, [name]: value }),
      text,
      isCurrent: (query[name] ?? null) === value
    }))
  )

/** The choice of a company: links to a few, a field for one of many, nothing for one. */
export const companyChoice = (
  { companies }: { readonly companies: ReadonlyArray<{ readonly name: string }> },
  path: string,
  query: Query
): Html => {
  if (companies.length < 2) return html``
  const names = companies.map(({ name }) => name)
  return companies.length <= detailedMax
    ? choiceLinks("Company", path, query, "company", [
        [null, "All companies"],
        ...names.map((name) => [name, visible(name)] as const)
      ])
    : html`<form method="get" action="${path}" role="search" aria-label="Company">
        ${select("company", "Company", "any", names, query["company"] ?? null)} ${hiddenFields(query, "company")}
        <button type="submit">Show</button>
      </form>`
}
