/** `tributary company remove`: a company leaves the warehouse's settings, and its rows stay or are erased. */
import * as Effect from "effect/Effect"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import * as Removal from "../../companies/Removal.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { switchFlag, warehouseCommand } from "../Command.ts"
import { usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import { awaitProcesses, nameArgument, operator, refuse, requireRow, rowTable, rowTotal } from "./Editing.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"

/** Why a removal needs a confirmation. */
const warningsOf = Effect.fnUntraced(function* (name: string, companyId: bigint | null, erases: boolean) {
  const { records, subscriptions } = yield* Removal.readUnfinished(name, companyId)
  const row = yield* CompanyStore.find(name)
  return [
    ...(row?.moveState === "arriving"
      ? ["it is arriving from another warehouse, which may have deleted its rows (repeat tributary company move there)"]
      : []),
    ...(records === 0 ? [] : [`${Output.plural(records, "record")} of its outbox will never be written to the source`]),
    ...(subscriptions === 0
      ? []
      : [
          `${Output.plural(subscriptions, "subscription")} of the source will go on delivering, and be refused ` +
            `(tributary webhooks delete --company ${name} ends them)`
        ]),
    ...(erases ? ["all its rows and its history are deleted, which cannot be undone"] : [])
  ]
})

/** Whether the company is in the warehouse, in the file, or was removed before. */
const confirmName = Effect.fnUntraced(function* (settings: Configuration, name: string, erases: boolean) {
  const stored = (yield* CompanyStore.find(name)) !== undefined
  // The settings have usable companies of the warehouse too; one that is in both is unusable.
  const has = (list: ReadonlyArray<{ readonly name: string }>) => list.some((one) => one.name === name)
  const isInFile = has(settings.companies) && (!stored || has(settings.unusable))
  if (isInFile && erases && stored) {
    return yield* refuse(
      `company ${name} is in the configuration file too, which uses its rows; remove it without --erase`
    )
  }
  const wasRemoved = !isInFile && (yield* TaskQueue.companyIdOf(name)) !== null
  if (!stored && !(erases && wasRemoved)) yield* requireRow(settings, name)
})

const lines = ({ action, company, receipt, rows }: Removal.Receipt): ReadonlyArray<string> =>
  action === "detach"
    ? [
        `Removed company ${company}: its rows stay; receipt ${receipt} in tributary.receipts`,
        `  to delete its rows as well: tributary company remove ${company} --erase`
      ]
    : [
        `Removed company ${company}: ${rowTotal(rows)} deleted; receipt ${receipt} in tributary.receipts`,
        ...rowTable(rows)
      ]

export const removeCommand = warehouseCommand({
  name: "remove",
  description: "Remove a company of the warehouse: its work ends; --erase also deletes its rows",
  examples: {
    "tributary company remove north": "Its rows stay",
    "tributary company remove north --erase --yes": "Its rows go too; prints the receipt"
  },
  flags: {
    name: nameArgument,
    erase: switchFlag("erase", "Delete every row of the company too, in all tables; needs --yes"),
    yes: switchFlag("yes", "Confirm what the command warns about")
  },
  run: (settings, { name, erase, yes }) =>
    Effect.gen(function* () {
      yield* confirmName(settings, name, erase)
      const companyId = yield* TaskQueue.companyIdOf(name)
      const warnings = yield* warningsOf(name, companyId, erase)
      if (warnings.length > 0 && !yes) {
        return yield* usageError(`company ${name} was not removed: ${warnings.join("; ")}; to confirm: --yes`)
      }
      const by = yield* operator
      const detached = yield* Removal.detach(name, companyId, by)
      if (!erase) return detached
      yield* awaitProcesses(name, companyId, `company ${name} is detached; run this again to erase its rows`)
      const { current, history } = settings.datasets
      return yield* Removal.erase(name, companyId, by, [current, history])
    }),
  lines
})
