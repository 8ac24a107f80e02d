/**
 * The move of a company to another warehouse.
 *
 * Promise: at each moment at most one warehouse works for the company. The source stops first. One transaction copies
 * all rows into the target, where the company is arriving. One transaction of the source, whose snapshot was copied,
 * deletes exactly these rows and writes the receipt: from its commit on the company belongs to the target, and only then
 * the rows that were not copied are deleted, and the target begins. Before that commit, `company resume` undoes the move; after it, a repeated move completes it. A
 * crash leaves the company stopped in both.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { bindStatement } from "../land/MovedIdentity.ts"
import { type Client, query, queryBuilt, queryNamed } from "../postgres/driver/Connection.ts"
import { control } from "../postgres/Tables.ts"
import { Database, type DatabaseError } from "../postgres/Database.ts"
import * as LockWait from "../postgres/LockWait.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as ColumnPromotion from "../warehouse/ColumnPromotion.ts"
import { pending } from "../warehouse/PendingRules.ts"
import { type Datasets, tableOf } from "../warehouse/Table.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import * as CompanyRows from "./CompanyRows.ts"
import * as CompanyStore from "./CompanyStore.ts"
import { MoveRefused } from "./MoveRefused.ts"
import * as Removal from "./Removal.ts"

const refuse = (message: string) => new MoveRefused({ message })

/** The other warehouse. */
export type Target = Context.Context<Database | SqlClient.SqlClient>

export interface Move {
  /** The settings of the company, which is leaving. */
  readonly row: CompanyStore.CompanyRow
  readonly companyId: bigint | null
  readonly token: Redacted.Redacted
  /** The key that seals the token in the target. */
  readonly targetKey: Redacted.Redacted
  /** The name of the company's rate budget. */
  readonly fingerprint: string
  readonly datasets: Datasets
  readonly by: string
}

export const clockStatement = Statement.make({
  name: "read the identity and the clock",
  columns: { identity: "text", ms: "float8" },
  text: "select tributary.database_identity() as identity, (extract(epoch from tributary.now()) * 1000)::float8 as ms"
})

/** The clocks of both warehouses order reads and limit the age of idempotency keys. */
const clockDifferenceMsMax = 60_000

/** Fails where the target is the same database, or its clock differs. */
export const confirmTarget = Effect.fnUntraced(function* (target: Target) {
  const [own] = yield* Statement.run(clockStatement)
  const [other] = yield* Effect.provideContext(Statement.run(clockStatement), target)
  if (own!.identity === other!.identity)
    return yield* refuse("the target is the warehouse that has the company already")
  const seconds = Math.round(Math.abs(own!.ms - other!.ms) / 1000)
  if (seconds * 1000 <= clockDifferenceMsMax) return
  return yield* refuse(`the clocks of the two database servers differ by ${seconds} s; set them right first`)
})

export const resourcesStatement = Statement.make({
  name: "read the resources of a company",
  params: ["int8?"],
  columns: { resource: "text" },
  text: "select distinct resource from tributary.checkpoints where company_id = $1 order by 1"
})

/** Makes the inferred columns of one catalogue in the warehouse of the other. */
const promoteMissing = Effect.fnUntraced(function* (
  from: Catalogue,
  to: Catalogue,
  paths: ReadonlyArray<string>,
  datasets: Datasets
) {
  for (const path of paths) {
    const base = to.resources.get(path)
    const requests = (from.resources.get(path)?.fields ?? []).flatMap(({ name, inferred }) =>
      inferred === null || (base?.field.get(name)?.inferred ?? null) !== null
        ? []
        : [{ field: name, type: inferred.type }]
    )
    if (base !== undefined) yield* ColumnPromotion.promote(base, requests, datasets)
  }
})

/** Creates the tables of the company's resources in the target, with the privacy rules that its rows follow; both warehouses get the inferred columns of the other. */
export const prepareTables = Effect.fnUntraced(function* (
  target: Target,
  catalogue: Catalogue,
  { companyId, datasets }: Pick<Move, "companyId" | "datasets">
) {
  const paths = (yield* Statement.run(resourcesStatement, [companyId])).map(({ resource }) => resource)
  const own = yield* WarehouseCatalogue.load(catalogue)
  const other = yield* Effect.provideContext(WarehouseCatalogue.load(catalogue), target)
  const tablesOf = ({ resources }: Catalogue) =>
    paths.flatMap((path) => (resources.has(path) ? [tableOf(resources.get(path)!, datasets)] : []))
  // Rows are copied as they are: they must follow the rules that the target's tables get.
  const [behind] = (yield* pending(tablesOf(own))).rules
  if (behind !== undefined) return yield* behind.reason
  yield* promoteMissing(other, own, paths, datasets)
  yield* Effect.gen(function* () {
    yield* promoteMissing(own, other, paths, datasets)
    yield* TablePlan.apply(tablesOf(yield* WarehouseCatalogue.load(catalogue)))
  }).pipe(Effect.provideContext(target))
})

export const beginStatement = Statement.make({
  name: "begin the move of a company",
  params: ["text"],
  columns: { company: "text" },
  text: `update tributary.company_settings s
            set move_state = 'leaving', move_id = coalesce(move_id, gen_random_uuid()::text), updated_at = tributary.now()
          where company = $1 and move_state is distinct from 'arriving'
            and not exists (select from tributary.receipts r where r.move_id = s.move_id) returning company`
})

/** Stops the work of the company. Processes apply it within seconds. Answers its settings from then on. */
export const begin = Effect.fnUntraced(function* (company: string) {
  // As for resume: a move that is giving the company away has the row locked, and the next statement sees its receipt.
  const [begun] = yield* transaction(
    Effect.andThen(Statement.run(CompanyStore.lockStatement, [company]), Statement.run(beginStatement, [company]))
  )
  const row = yield* CompanyStore.find(company)
  if (begun !== undefined && row !== undefined) return row
  return yield* refuse(`company ${company} was removed or has moved meanwhile, or is arriving from another warehouse`)
})

export const lockCheckpointsStatement = Statement.make({
  name: "lock the checkpoints of a company",
  params: ["int8?"],
  columns: { checkpoints: "int8" },
  text: `select count(*) as checkpoints
           from (select from tributary.checkpoints where company_id = $1 for update) c`
})

export const budgetStatement = Statement.make({
  name: "read a rate budget",
  params: ["text"],
  columns: { budget: "text" },
  text: "select to_json(b)::text as budget from tributary.budgets b where fingerprint = $1"
})

export const insertBudgetStatement = Statement.make({
  name: "store a rate budget",
  params: ["json"],
  text: "insert into tributary.budgets select * from json_populate_record(null::tributary.budgets, $1::json) on conflict do nothing"
})

export const installationStatement = Statement.make({
  name: "read the installation of a company",
  params: ["text?"],
  columns: { settings: "text" },
  text: "select settings::text as settings from tributary.installation_settings where installation = $1"
})

export const insertInstallationStatement = Statement.make({
  name: "store the installation of a company",
  params: ["text?", "json"],
  text: "insert into tributary.installation_settings (installation, settings) values ($1, $2::json) on conflict do nothing"
})

export const activateStatement = Statement.make({
  name: "activate a company that arrived",
  params: ["text", "text"],
  columns: { company: "text" },
  text: `update tributary.company_settings set move_id = null, move_state = null, updated_at = tributary.now()
          where company = $1 and move_id = $2 and move_state = 'arriving' returning company`
})

export const forgetStatement = Statement.make({
  name: "delete the settings of a company that has moved",
  params: ["text", "text"],
  text: "delete from tributary.company_settings where company = $1 and move_id = $2"
})

/** Deletes the copy of an earlier attempt of this move. Fails where the target has a company of this name. */
const discardCopy = Effect.fnUntraced(function* ({ row, companyId, datasets }: Move) {
  const { company } = row
  yield* transaction(
    Effect.gen(function* () {
      const [found] = yield* Statement.run(CompanyStore.lockStatement, [company])
      if (found === undefined) return
      if (found.moveState !== "arriving" || found.moveId !== row.moveId) {
        return yield* refuse(
          found.moveState === "arriving"
            ? `the target has a copy of company ${company} from another move; complete that one, or delete the copy there: ` +
                `tributary company remove ${company} --erase --yes`
            : `the target has a company ${company} already`
        )
      }
      yield* CompanyStore.remove(company)
      const relations = yield* Statement.run(Removal.relationsStatement, [
        [datasets.current, datasets.history, "tributary"]
      ])
      yield* Statement.run(Removal.deleteRowsStatement, [company, companyId, relations.map(({ name }) => name)])
    })
  )
})

const runOn =
  (client: Client): Statement.Run<DatabaseError> =>
  (statement, ...values) =>
    queryNamed(client, statement, ...values)

/** Copies the company into the transaction of the target. Answers the rows by table. */
const copyAll = Effect.fnUntraced(function* (
  { row, companyId, token, targetKey, fingerprint, datasets }: Move,
  clients: { readonly source: Client; readonly target: Client },
  shapes: ReadonlyArray<CompanyRows.Shape>,
  offsets: CompanyRows.Offsets
) {
  const { source, target } = clients
  const { company } = row
  const owner = { company, companyId }
  yield* CompanyRows.begin(target, "read committed")
  const targetShapes = yield* queryNamed(target, CompanyRows.shapesStatement, [
    [datasets.current, datasets.history, "tributary"]
  ])
  const occupied = yield* CompanyRows.findRows(target, owner, targetShapes)
  if (occupied.length > 0) {
    return yield* refuse(
      `the target has rows of company ${company}${companyId === null ? "" : ` or of company number ${companyId}`} ` +
        `(${occupied.slice(0, 3).join(", ")}); if they are of an earlier stay, delete them there: ` +
        `tributary company remove ${company} --erase --yes`
    )
  }
  const copied = new Map<string, bigint>()
  // A table to which another one refers goes before it.
  for (const shape of shapes.toReversed()) {
    const there = targetShapes.find(({ name }) => name === shape.name)
    const { rows } = yield* CompanyRows.copyTable(clients, owner, shape, there, offsets, datasets)
    if (rows > 0n) copied.set(shape.name, rows)
  }
  yield* queryNamed(target, bindStatement, [companyId, datasets.current, datasets.history])
  const [installation] = yield* queryNamed(source, installationStatement, [row.installation])
  if (installation !== undefined)
    yield* queryNamed(target, insertInstallationStatement, [row.installation, installation.settings])
  const [budget] = yield* queryNamed(source, budgetStatement, [fingerprint])
  if (budget !== undefined) yield* queryNamed(target, insertBudgetStatement, [budget.budget])
  const arrived = yield* queryBuilt(
    target,
    control
      .insertInto("tributary.company_settings")
      .values({
        ...CompanyStore.rowOf(row, yield* CompanyStore.seal(targetKey, row, token)),
        paused_at: row.pausedAt,
        paused_by: row.pausedBy,
        created_at: row.createdAt,
        move_id: row.moveId,
        move_state: "arriving"
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning("company")
  )
  if (arrived.length === 0) return yield* refuse(`another program has just added a company ${company} to the target`)
  return copied
})

/** Fails where the tables have other numbers of rows than those that were copied. */
const confirmCounts = (
  copied: ReadonlyMap<string, bigint>,
  now: ReadonlyMap<string, bigint>,
  names: Iterable<string>
) => {
  const changed = [...names].filter((name) => (copied.get(name) ?? 0n) !== (now.get(name) ?? 0n))
  return changed.length === 0
    ? Effect.void
    : Effect.fail(
        refuse(
          `other programs changed rows of the company while they were copied (${changed.join(", ")}); run this again`
        )
      )
}

/** One attempt: copies, verifies, and gives the company away. It may be repeated. */
const attempt = Effect.fnUntraced(function* (move: Move, target: Target) {
  const { row, companyId, datasets, by } = move
  const owner = { company: row.company, companyId }
  yield* Effect.provideContext(discardCopy(move), target)
  const source = yield* (yield* Database).connect
  yield* CompanyRows.begin(source, "repeatable read")
  const [found] = yield* queryNamed(source, CompanyStore.lockStatement, [row.company])
  if (found?.moveId !== row.moveId || found.moveState !== "leaving") {
    return yield* refuse(`the move of company ${row.company} was undone meanwhile`)
  }
  if (found.version !== row.version)
    return yield* refuse(`company ${row.company} was changed meanwhile; run this again`)
  yield* queryNamed(source, lockCheckpointsStatement, [companyId])
  const shapes = yield* queryNamed(source, CompanyRows.shapesStatement, [
    [datasets.current, datasets.history, "tributary"]
  ])
  const offsets = yield* Effect.provideContext(CompanyRows.reserveIds(shapes), target)
  const client = yield* Context.get(target, Database).connect
  const copied = yield* copyAll(move, { source, target: client }, shapes, offsets)
  const control = CompanyRows.controlOnly(shapes)
  yield* confirmCounts(
    copied,
    yield* CompanyRows.countRows(owner, control),
    control.map(({ name }) => name)
  )
  yield* query(client, "commit the copy", "commit")
  const relations = shapes.map(({ name }) => name)
  const receipt = yield* Removal.removeFrom(runOn(source), { ...owner, by, action: "move" }, relations, row.moveId)
  const deleted = new Map(Object.entries(receipt.rows).map(([name, rows]) => [name, BigInt(rows)]))
  yield* confirmCounts(copied, deleted, relations)
  yield* query(source, "give the company away", "commit")
  return receipt
}, Effect.scoped)

/** Copies the company to the target, and gives it away. No process of the source works for it. */
export const give = (move: Move, target: Target) => LockWait.attempts("The move waits", attempt(move, target))

export const receiptStatement = Statement.make({
  name: "look for the receipt of a move",
  params: ["text"],
  columns: { id: "int8", companyId: "int8?", moveId: "text?", rows: Statement.as<Removal.RowCounts>("json") },
  text: `select id, company_id as "companyId", move_id as "moveId", row_counts as rows
           from (select * from tributary.receipts where company = $1 and action <> 'forget' order by id desc limit 1) r where action = 'move'`
})

/** The receipt of the move by which the company left; undefined where it did not leave, or was removed later. */
export const readReceipt = (company: string) => Effect.map(Statement.run(receiptStatement, [company]), ([row]) => row)

/**
 * Begins the work of the target, once the source has given the company away, and gives its changes positions in the feed of
 * the target. False where it had begun before.
 */
export const complete = Effect.fnUntraced(function* (
  { company, companyId }: CompanyRows.Company,
  moveId: string,
  target: Target
) {
  yield* transaction(
    Effect.andThen(Statement.run(forgetStatement, [company, moveId]), Removal.removeDerived(company, companyId))
  )
  return yield* Effect.provideContext(
    Effect.gen(function* () {
      const activate = Statement.run(activateStatement, [company, moveId])
      if ((yield* transaction(Effect.tap(activate, () => ChangeFeed.order))).length > 0) return true
      const row = yield* CompanyStore.find(company)
      if (row !== undefined && row.moveState === null) return false
      return yield* refuse(`company ${company} has moved, and not to this target; name the target of the earlier move`)
    }),
    target
  )
})

/** Rows by table in the source. */
export const countRows = Effect.fnUntraced(function* (company: CompanyRows.Company, datasets: Datasets) {
  const shapes = yield* Statement.run(CompanyRows.shapesStatement, [[datasets.current, datasets.history, "tributary"]])
  return yield* CompanyRows.countRows(company, shapes)
})
