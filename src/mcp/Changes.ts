/** The tool `list_changes`: the change feed, from a position or its newest changes. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import * as Statement from "../postgres/Statement.ts"
import { answer, cut, Id, idOf, toolFailure, ToolFailure } from "./Answer.ts"
import { readAnswer } from "./Capabilities.ts"
import { companyOf, resourceOf } from "./Names.ts"

const changesDefault = 20
const changesMax = 200
const recordCharactersMax = 5_000

const nullableText = Schema.NullOr(Schema.String)

export const listChanges = Tool.make("list_changes", {
  description:
    "Lists changes of records in the order in which the warehouse landed them: the newest ones, or those after a position.",
  parameters: Schema.Struct({
    after: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(40)).annotate({
        description: "beginning, or the resume of an earlier change; without it the newest changes are listed"
      })
    ),
    resource: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
    company: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(200)).annotate({ description: "Its name or number" })
    ),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: changesMax })).annotate({
        description: `default ${changesDefault}`
      })
    ),
    records: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "Whether to show the records before and after each change; default false"
      })
    )
  }),
  success: answer(
    Schema.Struct({
      changes: Schema.Array(
        Schema.Struct({
          position: Id,
          resume: Schema.String,
          company_id: Id,
          resource: Schema.String,
          id: Schema.NullOr(Id),
          version: Schema.NullOr(Id),
          op: Schema.String,
          changed: Schema.NullOr(Schema.Array(Schema.String)).annotate({
            description: "The fields that an update changed"
          }),
          origin: nullableText,
          source: nullableText,
          landed_at: nullableText,
          before: Schema.optionalKey(nullableText),
          after: Schema.optionalKey(nullableText)
        })
      ),
      end: Schema.String.annotate({ description: "The position of the latest change of the feed" })
    })
  ),
  failure: ToolFailure
})

/** The position before the newest changes of the selection. A batch has changes of one resource of one company. */
export const newestStatement = Statement.make({
  name: "look for the newest changes",
  params: ["int8?", "text[]?", "int8"],
  columns: { number: "int8?" },
  text: `select min(greatest(b.last_position - b.changes, b.last_position - ($3 - b.later))) as number
           from (select w.last_position, w.changes, sum(w.changes) over (order by w.last_position desc) - w.changes as later
                   from (select last_position, changes from tributary.change_batches
                          where last_position is not null and ($1::bigint is null or company_id = $1)
                            and ($2::text[] is null or resource = any($2))
                          order by last_position desc limit $3) w) b
          where b.later < $3`
})

const positionOf = Effect.fnUntraced(function* (
  after: string | undefined,
  selection: ChangeFeed.Selection,
  limit: number
) {
  if (after === "beginning") return ChangeFeed.beginning
  if (after === undefined) {
    const { companyId, resources } = selection
    const [newest] = yield* Statement.run(newestStatement, [companyId, resources, limit])
    return newest?.number === undefined || newest.number === null
      ? ChangeFeed.beginning
      : { number: newest.number, token: null }
  }
  const position = ChangeFeed.parse(after)
  if (position !== null) return position
  return yield* Effect.fail(
    toolFailure(
      "invalid_position",
      `${after} is no position of the change feed.`,
      "Give beginning, or the resume of an earlier change, such as 1200-1f3a9c."
    )
  )
})

const changeOf = (change: ChangeFeed.Change, hasRecords: boolean) => ({
  position: idOf(change.position),
  resume: change.resume,
  company_id: idOf(change.companyId),
  resource: change.resource,
  id: change.id === null ? null : idOf(change.id),
  version: change.version === null ? null : idOf(change.version),
  op: change.op,
  changed: change.changed,
  origin: change.origin,
  source: change.source,
  landed_at: change.landedAt?.toISOString() ?? null,
  ...(hasRecords
    ? {
        before: change.before === null ? null : cut(change.before, recordCharactersMax),
        after: change.after === null ? null : cut(change.after, recordCharactersMax)
      }
    : {})
})

const lost = ({ message }: { readonly message: string }) =>
  Effect.fail(toolFailure("position_lost", message, "Call list_changes without after for the newest changes."))

export const handle = (given: {
  readonly after?: string
  readonly resource?: string
  readonly company?: string
  readonly limit?: number
  readonly records?: boolean
}) =>
  readAnswer(
    Effect.gen(function* () {
      const { limit = changesDefault } = given
      const company = given.company === undefined ? null : yield* companyOf(given.company)
      const resources = given.resource === undefined ? null : [yield* resourceOf(given.resource)]
      const selection = { companyId: company?.companyId ?? null, resources }
      const position = yield* positionOf(given.after, selection, limit)
      yield* ChangeFeed.confirm(position)
      const changes = yield* ChangeFeed.readAfter(position, selection, limit)
      const end = yield* ChangeFeed.end
      return {
        data: {
          changes: changes.slice(0, limit).map((change) => changeOf(change, given.records === true)),
          end: ChangeFeed.textOf(end)
        },
        scope: { resources, company: company?.company ?? null },
        remarks: [
          "Changes get a position at the end of the run that landed them; those of a run in progress are not listed."
        ]
      }
    }).pipe(Effect.catchTags({ PositionLost: lost, ViewDropped: lost }))
  )
