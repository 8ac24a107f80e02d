/** The privacy rules that the stored values of a resource follow, and since when. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"

export const appliedStatement = Statement.make({
  name: "read since when the privacy rules of a resource are applied",
  params: ["text"],
  columns: { statement: "text", appliedAt: "timestamptz" },
  text: `select statement, applied_at as "appliedAt" from tributary.privacy_rules where resource = $1`
})
export type AppliedRules = Statement.RowOf<typeof appliedStatement>

/** Null where the resource never had a rule. */
export const read = (resource: string) =>
  Effect.map(Statement.run(appliedStatement, [resource]), ([row]) => row ?? null)
