/** The resources whose stored values do not follow the privacy rules of this process. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { restored } from "./PrivacyRestored.ts"
import { RulesChanged } from "./RulesChanged.ts"
import type { Table } from "./Table.ts"

export const storedStatement = Statement.make({
  name: "read the applied privacy rules",
  params: ["text[]"],
  columns: { revision: "int8", rules: Statement.as<ReadonlyArray<StoredRules>>("json") },
  text: `select coalesce(max(revision), 0) as revision, coalesce(json_agg(json_build_object(
             'resource', resource, 'statement', statement, 'fields', fields, 'replaced', replaced))
           filter (where resource = any($1)), '[]') as rules
           from tributary.privacy_rules`
})

/** The rules that the stored values of a resource follow. */
interface StoredRules {
  readonly resource: string
  readonly statement: string
  readonly fields: string
  /** Statements of rules that they followed before. */
  readonly replaced: ReadonlyArray<string>
}

export const confirmStatement = Statement.make({
  name: "store which tables follow the privacy rules",
  params: ["text", "text", "text"],
  text: `update tributary.privacy_rules set tables = tributary.table_identity(to_regclass($2), to_regclass($3)) where resource = $1`
})

const noRules: Omit<StoredRules, "resource"> = { statement: "", fields: "[]", replaced: [] }

/** A resource whose stored values do not follow the rules of this process. */
export interface PendingRules {
  readonly table: Table
  readonly stored: Omit<StoredRules, "resource">
  /** Whether they followed them until they were restored. */
  readonly isRestored: boolean
  readonly reason: RulesChanged
}

/** What does not follow the rules of this process, and the revision at which that was read. */
export const pending = Effect.fnUntraced(function* (tables: ReadonlyArray<Table>): Effect.fn.Return<
  {
    readonly revision: bigint
    readonly rules: ReadonlyArray<PendingRules>
    /** Tables of another identity, whose values follow the rules. */
    readonly confirmed: ReadonlyArray<Table>
  },
  DatabaseError,
  SqlClient.SqlClient
> {
  const [row] = yield* Statement.run(storedStatement, [tables.map(({ resource }) => resource.path)])
  const known = new Map(row!.rules.map((one) => [one.resource, one]))
  const again = yield* restored(tables)
  const rules = tables.flatMap((table): ReadonlyArray<PendingRules> => {
    const { path: resource, protection } = table.resource
    const stored = known.get(resource) ?? noRules
    const own = protection?.statement ?? ""
    const isRestored = stored.statement === own
    if (isRestored && !again.resources.has(resource)) return []
    const reason = new RulesChanged({ resource, isReplaced: stored.replaced.includes(own) })
    return [{ table, stored, isRestored, reason }]
  })
  return { revision: row!.revision, rules, confirmed: again.confirmed }
})
