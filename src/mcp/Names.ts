/** The company and the resource that arguments name. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { toolFailure } from "./Answer.ts"

const companies = control
  .selectFrom("tributary.companies")
  .select(["company", "company_id as companyId"])
  .orderBy("company")

const namesMax = 100

/** The failure for a name that is not among these. */
const unknown = (kind: "company" | "resource", given: string, names: ReadonlyArray<string>) =>
  Effect.fail(
    toolFailure(
      `unknown_${kind}`,
      `There is no ${kind} ${given}.`,
      names.length === 0
        ? "Nothing has been synced yet: the operator runs tributary sync."
        : `Name one of: ${names.join(", ")}.`
    )
  )

/** The company with this name or number. */
export const companyOf = (given: string) =>
  Effect.gen(function* () {
    const found = yield* Query.first(
      companies
        .where((is) => is.or([is("company", "=", given), is(is.cast("company_id", "text"), "=", given)]))
        .limit(1)
    )
    if (found !== null) return found
    const all = yield* Query.run(companies.limit(namesMax))
    return yield* unknown(
      "company",
      given,
      all.map(({ company }) => company)
    )
  })

export const resourceNamesStatement = Statement.make({
  name: "look for a resource of the warehouse",
  params: ["text?", "int8"],
  columns: { resource: "text" },
  text: `select resource from (select resource from tributary.checkpoints union select resource from tributary.tasks) known
          where $1::text is null or resource =
                coalesce((select api_name from tributary.sql_names where scope = '' and sql_name = $1), $1)
          order by resource limit $2`
})

/** The path of the resource with this path or table. */
export const resourceOf = (given: string) =>
  Effect.gen(function* () {
    const [found] = yield* Statement.run(resourceNamesStatement, [given, 1])
    if (found !== undefined) return found.resource
    const all = yield* Statement.run(resourceNamesStatement, [null, namesMax])
    return yield* unknown(
      "resource",
      given,
      all.map(({ resource }) => resource)
    )
  })
