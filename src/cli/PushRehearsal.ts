/**
 * `tributary push --rehearse`: the push to a sandbox first.
 *
 * Promise: the source gets no request before the sandbox has accepted every record.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Operation } from "../outbox/Push.ts"
import * as Rehearse from "../outbox/Rehearse.ts"
import type { ValidInput } from "../outbox/ValidateInput.ts"
import { failureOf } from "../sync/Outcome.ts"
import type { CommandFailed } from "./Exit.ts"
import * as Output from "./Output.ts"
import { failWith } from "./PushRun.ts"
import * as PushText from "./PushText.ts"
import * as Sandbox from "./Sandbox.ts"

interface RehearsalTarget {
  readonly company: string
  readonly resource: Resource
  readonly operation: Operation
}

/** Writes the input to a sandbox while `read` passes its valid records on, and prints the result for people. */
export const rehearse = Effect.fnUntraced(function* <A, E, R>(
  settings: Configuration,
  { company: name, resource, operation }: RehearsalTarget,
  json: boolean,
  read: (onValid: (records: ReadonlyArray<ValidInput>) => Effect.Effect<void, CommandFailed>) => Effect.Effect<A, E, R>
) {
  const sandbox = yield* Sandbox.start(settings, { companies: [name] })
  const company = sandbox.companies[0]!
  yield* Output.note(`tributary: rehearsing on ${Sandbox.describe(company)} from the warehouse`)
  const connector = yield* Sandbox.connect(settings, sandbox, company)
  const loaded = new Set(company.resources)
  const { batchRecordsMax, useBatch } = settings.push
  const rehearsal = Rehearse.make({
    connector,
    resource,
    operation,
    batchRecordsMax,
    useBatch,
    isLoaded: (path) => loaded.has(path)
  })
  yield* read((records) => rehearsal.write(records).pipe(Effect.catch((error) => failWith(failureOf(error)))))
  const report = rehearsal.report()
  if (json) return report
  const [summary, ...more] = PushText.rehearsalLines(report, `${resource.path} of ${name}`)
  yield* Output.print(summary!)
  for (const line of more) yield* Output.note(line)
  return report
}, Effect.scoped)

/** Whether the sandbox took every record. */
export const isAccepted = ({ rejected, uncertain }: Rehearse.RehearsalReport): boolean =>
  rejected.length + uncertain.length === 0
