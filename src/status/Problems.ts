/**
 * Every problem that needs a person (`tributary.problems`), for interfaces.
 *
 * Promise: of many companies, the resources of at most {@link companiesMax} are read: those with an alert condition already,
 * and then the worst by their counted states. Everything else is read for all companies.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import { address, plural } from "../web/Escape.ts"
import { type Kind, kinds, kindTraits, type Severity } from "./ProblemKinds.ts"

const companiesMax = 200

export const worstStatement = Statement.make({
  name: "find the companies whose resources have problems",
  params: ["text[]?", "int4"],
  columns: { company: "text" },
  text: `select c.company from (
      select company from tributary.companies union select company from tributary.tasks where failures > 0) c
    left join (select company, true as is_open from tributary.alert_conditions
                where kind in ('late', 'failing', 'token', 'quarantine') group by 1) o using (company)
    left join tributary.company_states s using (company)
   where $1::text[] is null or c.company in (select unnest($1::text[]))
   order by o.is_open nulls last, s.severity desc nulls first, c.company limit $2::int`
})

const columns = `kind, company, subject, severity, level, size, since, what, remedy, command, is_consequence as "isConsequence"`

export const problemsStatement = Statement.make({
  name: "read the problems",
  params: ["text[]?", "text[]"],
  columns: {
    kind: Statement.as<Kind>("text"),
    /** Null for a problem of the whole warehouse. */
    company: "text?",
    /** The resource, endpoint, invariant, installation or process; empty where the kind and the company say it all. */
    subject: "text",
    severity: Statement.as<Severity>("text"),
    /** The size in classes, from 0. */
    level: "int4",
    size: "float8",
    /** When it began; null where that is not known. */
    since: "timestamptz?",
    /** A sentence without its full stop. */
    what: "text",
    remedy: "text",
    command: "text?",
    /** Whether it ends with another problem. */
    isConsequence: "bool"
  },
  text: `select ${columns} from tributary.resource_problems where company = any($2::text[])
   union all
  select ${columns} from tributary.other_problems
   where $1::text[] is null or company is null or company = any($1)
   order by company nulls first, subject, kind`
})
export type Problem = Statement.RowOf<typeof problemsStatement>

/** The worst kinds first; within a kind critical ones, then those that began first. */
const inOrder = (one: Problem, other: Problem): number =>
  kinds.indexOf(one.kind) - kinds.indexOf(other.kind) ||
  one.severity.localeCompare(other.severity) ||
  (one.since?.getTime() ?? Number.MAX_VALUE) - (other.since?.getTime() ?? Number.MAX_VALUE)

/** Runs statements that read the views. */
const uncompiled = <A>(statements: Sql.Query<A>): Sql.Query<A> =>
  transaction(Effect.andThen(Query.withoutCompilation, statements))

/** The problems of these companies and of the whole warehouse; of all companies for null. The worst first. */
export const read = (companies: ReadonlyArray<string> | null): Sql.Query<ReadonlyArray<Problem>> =>
  uncompiled(
    Effect.gen(function* () {
      const isFew = companies !== null && companies.length <= companiesMax
      const worst = isFew
        ? companies
        : (yield* Statement.run(worstStatement, [companies, companiesMax])).map(({ company }) => company)
      return (yield* Statement.run(problemsStatement, [companies, worst])).toSorted(inOrder)
    })
  )

/** The problems of all companies that are not about the state of a resource, whose states are not read. */
export const readBesideResources: Sql.Query<ReadonlyArray<Problem>> = uncompiled(
  Statement.run(problemsStatement, [null, []])
)

/** What to do, with the command. */
export const stepOf = ({ remedy, command }: Pick<Problem, "remedy" | "command">): string =>
  command === null ? remedy : `${remedy}: ${command}`

/** Problems with one cause and one remedy. */
export interface ProblemGroup {
  readonly kind: Kind
  readonly severity: Severity
  /** The worst of them. */
  readonly first: Problem
  /** How many they are, and of how many companies. */
  readonly problems: number
  readonly companies: number
  /** When the first of them began; null where that is not known. */
  readonly since: Date | null
}

const requestOf = /^([A-Z]+ \S+): | \[request ([^\]]*)\]/g

/** An error without its request, which is different for each resource. */
export const withoutRequest = (error: string): string =>
  error.replace(requestOf, "").replace(/\((?=[45]\d\d[ )])/, "(HTTP ")

/** The requests of an error: each as it was sent, or by the id that the source gave it. Empty where it has none. */
export const requestsOf = (error: string): ReadonlyArray<{ readonly request: string } | { readonly id: string }> =>
  [...error.matchAll(requestOf)].map(([, request, id]) => (request === undefined ? { id: id ?? "" } : { request }))

/** What happened, beside the name of the subject and without the request. */
export const sentenceOf = ({ subject, what }: Pick<Problem, "subject" | "what">): string => {
  const brief = withoutRequest(what)
  return subject !== "" && brief.startsWith(`${subject}: `) ? brief.slice(subject.length + 2) : brief
}

/** The same for problems that differ only in their subject, request and numbers other than a status of three digits. */
const cause = (problem: Problem): string =>
  JSON.stringify([
    problem.kind,
    sentenceOf(problem).replace(/\d+/g, (digits) => (digits.length === 3 ? digits : "0")),
    problem.kind === "failing" || problem.kind === "late" ? "" : problem.subject
  ])

/** The problems that are no consequence of others, those with the same cause together. */
export const grouped = (problems: ReadonlyArray<Problem>): ReadonlyArray<ProblemGroup> =>
  [
    ...Map.groupBy(
      problems.filter(({ isConsequence }) => !isConsequence),
      cause
    ).values()
  ].map((same) => {
    const first = same.toSorted(inOrder)[0]!
    const began = same.flatMap(({ since }) => since?.getTime() ?? [])
    return {
      kind: first.kind,
      severity: first.severity,
      first,
      problems: same.length,
      companies: new Set(same.map(({ company }) => company)).size,
      since: began.length === 0 ? null : new Date(Math.min(...began))
    }
  })

/** What has the problem: one thing, or the first of several. Names are as they are stored. */
export const subjectOf = ({ first, problems, companies, kind }: ProblemGroup): string => {
  const { company, subject } = first
  const place = company === null ? "" : companies > 1 ? plural(companies, "company", "companies") : `company ${company}`
  const one = [subject, place].filter((part) => part !== "").join(" of ")
  const name = one === "" ? kindTraits[kind].unit[0] : one
  return problems === 1 || companies === problems ? name : `${name} and ${plural(problems - 1, "other")}`
}

/** The page of the dashboard that shows more of a problem. */
export const pageOf = ({ kind, company, subject }: Pick<Problem, "kind" | "company" | "subject">): string => {
  const [place = "", fragment] = kindTraits[kind].page.split("#")
  const [path = "", query = ""] = place.split("?")
  const valueOf = (text: string) => (text === ":company" ? company : text === ":subject" ? subject : text)
  const parts = path.split("/").map((part) => encodeURIComponent(valueOf(part) ?? ""))
  const given = Object.fromEntries([...new URLSearchParams(query)].map(([name, text]) => [name, valueOf(text)]))
  return address(parts.join("/"), given) + (fragment === undefined ? "" : `#${fragment}`)
}

/** What the problems of a kind count together. */
export interface KindNumber {
  readonly kind: Kind
  readonly number: number
  readonly severity: Severity
}

const numberOf = (kind: Kind, problems: number, size: number): number => (kindTraits[kind].isSized ? size : problems)

/** The number of each kind that has problems beside consequences, the worst kinds first. */
export const numbersOf = (problems: ReadonlyArray<Problem>): ReadonlyArray<KindNumber> =>
  kinds.flatMap((kind) => {
    const own = problems.filter((one) => one.kind === kind && !one.isConsequence)
    return own.length === 0
      ? []
      : [
          {
            kind,
            number: numberOf(
              kind,
              own.length,
              own.reduce((sum, { size }) => sum + size, 0)
            ),
            severity: own.some(({ severity }) => severity === "critical") ? "critical" : "warning"
          }
        ]
  })

export const menuStatement = Statement.make({
  name: "count problems for the menu",
  columns: { kind: Statement.as<Kind>("text"), problems: "float8", size: "float8" },
  text: `select kind, count(*)::float8 as problems, sum(size)::float8 as size
    from tributary.other_problems where not is_consequence group by kind`
})

/** The numbers beside the entries of the menu, by section: problems that are not about the state of a resource. */
export const readMenu: Sql.Query<Readonly<Record<string, number>>> = Effect.map(
  Statement.run(menuStatement),
  (rows) => {
    const numbers: Record<string, number> = {}
    for (const { kind, problems, size } of rows) {
      const { section } = kindTraits[kind]
      if (section !== null) numbers[section] = (numbers[section] ?? 0) + numberOf(kind, problems, size)
    }
    return numbers
  }
)
