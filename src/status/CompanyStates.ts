/**
 * The counted states of companies (`src/tasks/CountCompanies.ts`), for interfaces.
 *
 * Promise: a reader needs time for the companies, not for their resources.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { companyStates, type State } from "../tasks/CountCompanies.ts"

/** More companies than this are shown by their counted states, the worst first. */
export const detailedMax = 20

const isOf = "company in (select unnest($1::text[]))"
const counts = ["resources", "failing", "late", "never_synced", "blocked", "paused", "fresh"] as const
/** Signs of trouble beside the states of the resources. */
export const signs = ["quarantined", "dead_letters", "gaps", "rejected", "subscriptions_down"] as const
export type Sign = (typeof signs)[number]

/** The companies to list. */
export interface Filter {
  /** Null is any. */
  readonly state: State | null
  /** A part of the name; null is any. */
  readonly text: string | null
  /** Only companies with this sign; `undelivered`: with dead letters, open gaps or a subscription that is not active. */
  readonly sign: Sign | "undelivered" | null
}
export const anyCompany: Filter = { state: null, text: null, sign: null }

/** The worst first, the longest late against its target, the most signs of trouble, or by name. */
export const orders = ["worst", "lateness", "signs", "name"] as const
export type Order = (typeof orders)[number]

export const totalsStatement = Statement.make({
  name: "count companies by state",
  params: ["text[]"],
  columns: {
    state: Statement.as<State>("text"),
    companies: "float8",
    ...Statement.columns("float8", ...counts, ...signs),
    /** The number of companies with each sign, in the order of {@link signs}. */
    with: "float8[]",
    /** The number of companies with a late resource; a failing company may have one too. */
    withLate: "float8",
    /** Time since the oldest count that is out of date: a resource may have become late a minute ago. */
    outdatedMs: "float8?"
  },
  text: `select state, count(*)::float8 as companies,
         ${[...counts, ...signs].map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`).join(", ")},
         array[${signs.map((name) => `count(*) filter (where ${name} > 0)`).join(", ")}]::float8[] as with,
         (count(*) filter (where late > 0))::float8 as "withLate",
         (extract(epoch from max(tributary.now() - counted_at) filter (where late_at < now.at - interval '1 minute')) * 1000)::float8 as "outdatedMs"
    from tributary.company_states, (select tributary.now() as at) now where ${isOf} group by state`
})
type Totals = Statement.RowOf<typeof totalsStatement>
export type Amount = (typeof counts)[number] | (typeof signs)[number]

/** All companies of a warehouse. */
export interface Summary {
  readonly companies: number
  /** Companies whose state was not counted yet. */
  readonly uncounted: number
  readonly byState: Readonly<Record<State, number>>
  readonly amounts: Readonly<Record<Amount, number>>
  /** The number of companies with each sign of trouble. */
  readonly companiesWith: Readonly<Record<Sign, number>>
  /** The number of companies with a late resource, whatever their state. */
  readonly companiesLate: number
  /** Time since the oldest count that is out of date; null when none is. */
  readonly outdatedMs: number | null
}

/** The totals of these companies. */
export const readSummary = (names: ReadonlyArray<string>): Sql.Query<Summary> =>
  Effect.map(Statement.run(totalsStatement, [names]), (rows) => {
    const sum = (of: (row: Totals) => number) => rows.reduce((total, row) => total + of(row), 0)
    const inState = (state: State) => rows.find((row) => row.state === state)?.companies ?? 0
    const byState = Object.fromEntries(companyStates.map((state) => [state, inState(state)]))
    const amounts = Object.fromEntries([...counts, ...signs].map((name) => [name, sum((row) => row[name])]))
    const outdated = rows.flatMap(({ outdatedMs }) => outdatedMs ?? [])
    return {
      companies: names.length,
      uncounted: names.length - sum(({ companies }) => companies),
      byState: byState as Summary["byState"],
      amounts: amounts as Summary["amounts"],
      companiesWith: Object.fromEntries(
        signs.map((name, index) => [name, sum((row) => row.with[index] ?? 0)])
      ) as Summary["companiesWith"],
      companiesLate: sum(({ withLate }) => withLate),
      outdatedMs: outdated.length === 0 ? null : Math.max(...outdated)
    }
  })

/** A company and its installation, by name. */
export interface InstallationMember {
  readonly name: string
  readonly installation: string
}

export const installationsStatement = Statement.make({
  name: "count companies by installation",
  params: ["text[]", "text[]"],
  columns: {
    installation: "text",
    companies: "float8",
    /** Companies in each state, in the order of `companyStates`. */
    inState: "float8[]"
  },
  text: `select m.installation, count(*)::float8 as companies,
         array[${companyStates.map((state) => `count(*) filter (where s.state = '${state}')`).join(", ")}]::float8[] as "inState"
    from unnest($1::text[], $2::text[]) as m(company, installation) left join tributary.company_states s using (company)
   group by 1 order by max(s.severity) desc nulls last, 1`
})

/** The companies of an installation by state, as last counted; those in no state were not counted yet. */
export interface InstallationState {
  readonly installation: string
  readonly companies: number
  readonly byState: Readonly<Record<State, number>>
}

/** The installations of these companies, the worst first; none where all are of one. */
export const readInstallations = (
  members: ReadonlyArray<InstallationMember>
): Sql.Query<ReadonlyArray<InstallationState>> =>
  new Set(members.map(({ installation }) => installation)).size < 2
    ? Effect.succeed([])
    : Effect.map(
        Statement.run(installationsStatement, [
          members.map(({ name }) => name),
          members.map(({ installation }) => installation)
        ]),
        (rows) =>
          rows.map(({ companies, inState, installation }) => ({
            installation,
            companies,
            byState: Object.fromEntries(
              companyStates.map((state, index) => [state, inState[index] ?? 0])
            ) as InstallationState["byState"]
          }))
      )

const undelivered = "dead_letters + gaps + subscriptions_down"
const keyOf: Readonly<Record<Order, string>> = {
  worst: "severity",
  lateness: "lateness",
  signs: signs.join(" + "),
  name: "0"
}

/** `case PARAMETER when NAME then EXPRESSION …` */
const caseOf = (parameter: string, branches: Readonly<Record<string, string>>): string =>
  `case ${parameter}::text ${Object.entries(branches)
    .map(([name, expression]) => `when '${name}' then ${expression}`)
    .join(" ")} end`

export const listStatement = Statement.make({
  name: "list companies in an order",
  params: ["text[]", "text?", "text?", "float8?", "text?", "int4", "text?", "text"],
  columns: {
    company: "text",
    state: Statement.as<State>("text"),
    severity: "float8",
    ...Statement.columns("int4", ...counts),
    ...Statement.columns("float8", "lateness", ...signs),
    ...Statement.columns("text?", "worstResource", "error", "remedy"),
    countedAt: "timestamptz",
    countedMs: "float8"
  },
  text: `select company, state, severity, ${counts.join(", ")}, lateness, ${signs.map((name) => `${name}::float8 as ${name}`).join(", ")},
         worst_resource as "worstResource", error, remedy, counted_at as "countedAt",
         (extract(epoch from tributary.now() - counted_at) * 1000)::float8 as "countedMs"
    from (select *, (${caseOf("$8", keyOf)})::float8 as key from tributary.company_states) s
   where ($2::text is null or state = $2) and ($3::text is null or strpos(lower(company), lower($3)) > 0)
     and ($4::float8 is null or key < $4 or (key = $4 and company > $5))
     and ($7::text is null or ${caseOf("$7", { ...Object.fromEntries(signs.map((name) => [name, name])), undelivered })} > 0)
     and ${isOf}
   order by key desc, company limit $6::int`
})
export type CompanyState = Statement.RowOf<typeof listStatement>

/** The place in the list after which it continues. */
export interface Place {
  /** Companies with a higher key come first. */
  readonly key: number
  readonly company: string
}

/** The place of a listed company in an order. */
export const placeOf = (of: CompanyState, order: Order): Place => ({
  company: of.company,
  key:
    order === "worst"
      ? of.severity
      : order === "lateness"
        ? of.lateness
        : order === "signs"
          ? signs.reduce((sum, sign) => sum + of[sign], 0)
          : 0
})

/** The companies of these names that match, in this order, after a place. */
export const list = (
  names: ReadonlyArray<string>,
  { state, text, sign }: Filter,
  after: Place | null,
  companiesMax: number,
  order: Order = "worst"
): Sql.Query<ReadonlyArray<CompanyState>> =>
  Statement.run(listStatement, [
    names,
    state,
    text,
    after?.key ?? null,
    after?.company ?? null,
    companiesMax,
    sign,
    order
  ])
