/** `tributary forget`: removes the values of one record from everything but its current version at the source. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import { companyIdOf } from "../tasks/TaskQueue.ts"
import { forget, type ForgottenRecord, referringTo } from "../retention/Forget.ts"
import { tableOf } from "../warehouse/Table.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { switchFlag, textFlag, warehouseCommand } from "./Command.ts"
import { operator } from "./company/Editing.ts"
import { unreadReason } from "./CompanyResources.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { resourceOf } from "./Targets.ts"

interface ForgetReport extends ForgottenRecord {
  readonly company: string
  readonly resource: string
  readonly id: bigint
  /** Why the company does not read the resource; null where it does. */
  readonly unread: string | null
  readonly referredToBy: ReadonlyArray<{ readonly field: string; readonly records: number }>
}

const lines = (report: ForgetReport): ReadonlyArray<string> => [
  `${report.resource} ${report.id} of company ${report.company}: receipt ${report.receipt} in tributary.receipts`,
  Output.table(
    ["table", "rows without their values"],
    Object.entries(report.rows).map(([table, count]) => [table, Output.count(count)]),
    ["left", "right"]
  ),
  ...(report.unread === null ? [] : [`  ${report.unread}: its current version was emptied, too`]),
  ...(report.isCurrentKept
    ? [
        "  its current version stays as the source has it: remove the values there and sync, then run this again",
        `  to keep them out of the warehouse: resources.${report.resource}.exclude in the configuration`
      ]
    : []),
  ...report.referredToBy.map(
    ({ field, records }) => `  ${Output.plural(records, "record")} with ${field} may repeat its values in their texts`
  ),
  "  backups, exports, closes, replication slots and what endpoints of changes received keep them"
]

export const command = warehouseCommand({
  name: "forget",
  examples: {
    "tributary forget RESOURCE 17 --yes": "Record 17 of the only company",
    "tributary forget RESOURCE 17 --company north --yes --json": "The receipt, for a program"
  },
  flags: {
    resource: Argument.String("resource").pipe(Argument.withDescription("The resource of the record")),
    id: Argument.Int("id").pipe(Argument.withDescription("The record's number")),
    company: textFlag("company", "NAME", "The company of the record (default: the only one)"),
    yes: switchFlag("yes", "Confirm: the values cannot be restored")
  },
  run: (settings, flags) =>
    Effect.gen(function* () {
      const names = settings.companies.map(({ name }) => name)
      const name = Option.getOrUndefined(flags.company) ?? (names.length === 1 ? names[0] : undefined)
      if (name === undefined) return yield* usageError(`name the company of the record: --company ${names.join("|")}`)
      const companyId = yield* companyIdOf(name)
      if (companyId === null) return yield* usageError(`the warehouse has no rows of company "${name}"`)
      const { path } = yield* resourceOf(settings, flags.resource)
      const catalogue = yield* WarehouseCatalogue.load(yield* catalogueOf(settings))
      if (!flags.yes) {
        return yield* usageError(
          `the values of ${path} ${flags.id} of company ${name} cannot be restored afterwards; to confirm: --yes`
        )
      }
      const table = tableOf(catalogue.resources.get(path)!, settings.datasets)
      const id = BigInt(flags.id)
      const unread = unreadReason(
        settings.companies.filter((one) => one.name === name),
        path
      )
      const options = { by: yield* operator, isRead: unread === null }
      const done = yield* forget(table, { name, id: companyId }, id, options)
      if (done === null) {
        const reason = unread === null ? "" : `: ${unread}`
        return yield* usageError(`the warehouse has no version of ${path} ${id} of company ${name}${reason}`)
      }
      const referredToBy = yield* referringTo(catalogue, settings.datasets, path, companyId, id)
      return { ...done, company: name, resource: path, id, referredToBy, unread } satisfies ForgetReport
    }),
  lines,
  code: ({ isCurrentKept }) => (isCurrentKept ? exitCode.incomplete : exitCode.ok)
})
