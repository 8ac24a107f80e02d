/** `tributary company move`: a company goes to another warehouse, with all its rows. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { companyFingerprint } from "../../budget/TokenFingerprint.ts"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import * as Move from "../../companies/Move.ts"
import * as Removal from "../../companies/Removal.ts"
import { companiesKeyVariable, keyLengthMin } from "../../configuration/Companies.ts"
import { findInstallation } from "../../configuration/Installations.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as PushPause from "../../outbox/PushPause.ts"
import { Database } from "../../postgres/Database.ts"
import * as Migrations from "../../postgres/Migrations.ts"
import { switchFlag, textFlag, warehouseCommand } from "../Command.ts"
import { catalogueOf } from "../EffectiveCatalogue.ts"
import { exitCode, usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import * as Warehouse from "../Warehouse.ts"
import {
  awaitProcesses,
  nameArgument,
  operator,
  readRows,
  readVariable,
  refuse,
  requireKey,
  requireRow,
  rowTable,
  rowTotal
} from "./Editing.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"

/** The address is no argument: it has a password, and every user of the machine sees arguments. */
const readTarget = ({ toEnv }: { readonly toEnv: Option.Option<string> }) =>
  Option.match(toEnv, {
    onNone: () => Effect.fail(usageError("name the target: --to-env VAR")),
    onSome: (name) => readVariable("--to-env", name)
  })

/** The key of the target: another one, or that of the source. */
const readTargetKey = Effect.fnUntraced(function* (key: Redacted.Redacted, variable: Option.Option<string>) {
  if (Option.isNone(variable)) return key
  const other = yield* readVariable("--to-key-env", variable.value)
  if (Redacted.value(other).length >= keyLengthMin) return other
  return yield* refuse(`the key of --to-key-env has fewer than ${keyLengthMin} characters`)
})

/** Fails where the company cannot leave this warehouse. */
const confirmSource = Effect.fnUntraced(function* (settings: Configuration, name: string, companyId: bigint | null) {
  const has = (list: ReadonlyArray<{ readonly name: string }>) => list.some((one) => one.name === name)
  if (has(settings.companies) && has(settings.unusable)) {
    return yield* refuse(`company ${name} is in the configuration file too, which uses its rows; remove it there first`)
  }
  const { records } = yield* Removal.readUnfinished(name, companyId)
  const paused = yield* PushPause.read
  if (paused !== null && records > 0) {
    return yield* refuse(
      `${PushPause.sentence(paused)}; the target would send ${Output.plural(records, "record")} of company ${name}: ` +
        `compare them with the source, then run ${PushPause.releaseCommand}`
    )
  }
})

/** Stops the company, copies it, and gives it away. */
const give = Effect.fnUntraced(function* (
  settings: Configuration,
  name: string,
  targetKey: Redacted.Redacted,
  target: Move.Target
) {
  const key = yield* requireKey(settings)
  const stored = yield* requireRow(settings, name)
  const companyId = yield* TaskQueue.companyIdOf(name)
  yield* confirmSource(settings, name, companyId)
  const tokenOf = (row: CompanyStore.CompanyRow) => {
    const token = CompanyStore.tokenOf(key, row)
    return token === null
      ? Effect.fail(refuse(`${companiesKeyVariable} does not open the token of company ${name}`))
      : Effect.succeed(token)
  }
  yield* tokenOf(stored)
  yield* Effect.provideContext(readRows(targetKey), target)
  const { datasets } = settings
  yield* Move.prepareTables(target, yield* catalogueOf(settings), { companyId, datasets })
  const row = yield* Move.begin(name)
  const again = `company ${name} is stopped; run this again, or undo it: tributary company resume ${name}`
  yield* awaitProcesses(name, companyId, again)
  yield* Output.note(`No process works for company ${name} any more: copying its rows`)
  const token = yield* tokenOf(row)
  const installation =
    row.installation === null ? settings.installation : findInstallation(settings.installations, row.installation)
  if ("problem" in installation) return yield* refuse(installation.problem)
  const fingerprint = companyFingerprint({ url: row.url, token, installation })
  const by = yield* operator
  yield* Move.give({ row, companyId, token, targetKey, fingerprint, datasets, by }, target)
})

const move = Effect.fnUntraced(function* (
  settings: Configuration,
  name: string,
  url: Redacted.Redacted,
  keyVariable: Option.Option<string>
) {
  const targetKey = yield* readTargetKey(yield* requireKey(settings), keyVariable)
  const { locks } = yield* Database
  if (!(yield* locks.tryLock(`tributary:move:${name}`))) {
    return yield* refuse(`another program is moving company ${name}; wait for it, or end it`)
  }
  const target = yield* Layer.build(Layer.fresh(Warehouse.layer({ ...settings, databaseUrl: url })))
  yield* Move.confirmTarget(target)
  const row = yield* CompanyStore.find(name)
  const before = yield* Move.readReceipt(name)
  const isGiven = before !== undefined && (row === undefined || row.moveId === before.moveId)
  if (!isGiven) yield* give(settings, name, targetKey, target)
  const receipt = (yield* Move.readReceipt(name))!
  const moved = { company: name, companyId: receipt.companyId }
  const isNew = yield* Move.complete(moved, receipt.moveId ?? "", target)
  // Other programs may have written while the source gave the company away.
  const left = yield* Move.countRows(moved, settings.datasets)
  const { subscriptions } = yield* Effect.provideContext(Removal.readUnfinished(name, receipt.companyId), target)
  return {
    company: name,
    companyId: receipt.companyId,
    receipt: receipt.id,
    isNew,
    rows: receipt.rows,
    left: Object.fromEntries([...left].map(([table, rows]) => [table, Number(rows)])),
    subscriptions
  }
}, Effect.scoped)

/** What a move would copy. Changes nothing. */
const preview = Effect.fnUntraced(function* (settings: Configuration, name: string, url: Redacted.Redacted) {
  yield* requireRow(settings, name)
  const companyId = yield* TaskQueue.companyIdOf(name)
  const rows = yield* Move.countRows({ company: name, companyId }, settings.datasets)
  const pending = yield* Migrations.pendingMigrations().pipe(
    Effect.provide(Layer.fresh(Warehouse.databaseLayer({ ...settings, databaseUrl: url })))
  )
  return {
    company: name,
    companyId,
    rows: Object.fromEntries([...rows].map(([table, count]) => [table, Number(count)])),
    migrations: pending.map(({ file }) => file)
  }
})

type Preview = Effect.Success<ReturnType<typeof preview>>
type Moved = Effect.Success<ReturnType<typeof move>>

const previewLines = ({ company, migrations, rows }: Preview) => [
  `Would move company ${company}: ${rowTotal(rows)}`,
  ...rowTable(rows),
  ...(migrations.length === 0 ? [] : [`  and migrate the target: ${migrations.join(", ")}`])
]

const movedLines = ({ company, isNew, left, receipt, rows, subscriptions }: Moved) => [
  isNew
    ? `Moved company ${company}: ${rowTotal(rows)}; receipt ${receipt} in tributary.receipts`
    : `Company ${company} had moved before; receipt ${receipt} in tributary.receipts`,
  ...(isNew ? rowTable(rows) : []),
  "  processes of the target work for it within seconds; they need the same configuration",
  ...(subscriptions === 0
    ? []
    : [
        `  where the target has another webhooks.public_url, run there: tributary webhooks ensure --company ${company}; ` +
          "then delete the subscription to the earlier address (webhooks list, webhooks delete ID)"
      ]),
  ...(Object.keys(left).length === 0
    ? []
    : [
        `  other programs wrote ${rowTotal(left)} while it moved, which are still here: insert them in the target, and delete them here`,
        ...rowTable(left)
      ])
]

export const moveCommand = warehouseCommand({
  name: "move",
  description:
    "Move a company with all its rows to another warehouse: it stops here, and goes on there; repeat it after an interruption",
  examples: {
    "tributary company move north --to-env OTHER_DATABASE_URL --dry-run": "The rows that would be copied",
    "tributary company move north --to-env OTHER_DATABASE_URL": "Prints the receipt"
  },
  flags: {
    name: nameArgument,
    toEnv: textFlag(
      "to-env",
      "VAR",
      "The environment variable (or .env entry) that has the address of the other warehouse's database"
    ),
    toKeyEnv: textFlag(
      "to-key-env",
      "VAR",
      `The variable with the ${companiesKeyVariable} of the other warehouse (default: the same key)`
    ),
    dryRun: switchFlag("dry-run", "Show the rows that would be copied; change nothing")
  },
  run: (settings, flags) =>
    Effect.gen(function* () {
      const url = yield* readTarget(flags)
      if (flags.dryRun) return yield* preview(settings, flags.name, url)
      return yield* move(settings, flags.name, url, flags.toKeyEnv).pipe(
        Effect.catchTag("MoveRefused", ({ message }) => Effect.fail(refuse(message)))
      )
    }),
  lines: (result) => ("receipt" in result ? movedLines(result) : previewLines(result)),
  code: (result) => ("left" in result && Object.keys(result.left).length > 0 ? exitCode.incomplete : exitCode.ok)
})
