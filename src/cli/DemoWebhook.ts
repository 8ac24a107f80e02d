/**
 * The demo's webhook: a subscription, a change at the source, a signed delivery over HTTPS, and the row.
 *
 * Promise: the service is the one that `tributary serve` runs, with a temporary certificate. A step that does not happen
 * is an error; no line claims it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Configuration } from "../configuration/Configuration.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { tableOf } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as SigningSecrets from "../subscriptions/SigningSecrets.ts"
import * as StaticOwnership from "../processes/StaticOwnership.ts"
import * as Serve from "../serve/Serve.ts"
import * as Subscriptions from "../subscriptions/Subscriptions.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as ServedCompanies from "./ServedCompanies.ts"
import * as ServeLayers from "./ServeLayers.ts"
import type { Demo, DemoCompany, Fired, Reference, ReferenceFailed } from "../connector/Demo.ts"
import { Source } from "./Source.ts"

/** The change that a webhook delivered. */
export interface TransferResult {
  readonly eventType: string
  readonly eventId: string
  /** The status that the receiver answered. */
  readonly acknowledgement: number
  /** From the commit of the event to the landing of the row. */
  readonly durationMs: number
  readonly resource: string
  readonly id: string
  readonly field: string
  readonly before: string | null
  readonly after: string | null
}

/** The reference server with its companies, configured and connected. */
export interface DemoWorld {
  readonly demo: Demo
  readonly reference: Reference
  readonly companies: ReadonlyArray<DemoCompany>
  readonly settings: Configuration
  readonly sources: ReadonlyArray<SyncCompany>
  readonly say: (line: string) => Effect.Effect<void>
}

const eventMaxMs = 15_000

/** A bug of the demo itself. */
export const failed = (message: string) =>
  new CommandFailed({ code: exitCode.fault, message: `${message}; please report it` })

/** The failure of a change as that of the command. */
export const describe = Effect.mapError((error: SourceError | ReferenceFailed) =>
  error._tag === "SourceError"
    ? new CommandFailed({ code: exitCode.fault, message: `${error.message}; ${error.remedy}` })
    : error
)

export interface Certificate {
  readonly files: { readonly certificate: string; readonly key: string }
  readonly pem: string
}

/** A temporary certificate for this machine, in files that are removed with the scope. */
export const throwAwayCertificate = (dataDirectory: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { generate } = await import("selfsigned")
      const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
        keyType: "ec",
        algorithm: "sha256",
        extensions: [
          { name: "basicConstraints", cA: true, critical: true },
          { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }
        ]
      })
      const folder = mkdtempSync(join(dataDirectory, "certificate-"))
      const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
      writeFileSync(files.certificate, cert)
      writeFileSync(files.key, key, { mode: 0o600 })
      return { files, folder, pem: cert }
    }),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

/** The current value of a record of the first company in the warehouse. */
const valueOf = Effect.fnUntraced(function* ({ companies, sources }: DemoWorld, { resource, id, field }: Fired) {
  const table = tableOf(sources[0]!.connector.catalogue.resources.get(resource)!)
  const [row] = yield* Sql.rows<{ value: string | null }>(
    `select ${identifier(field)}::text as value from ${table.current} where _company_id = $1 and id = $2`,
    [companies[0]!.companyId, id]
  )
  return row?.value ?? null
})

export const settledStatement = Statement.make({
  name: "look for a processed event",
  params: ["text"],
  columns: { ms: "float8" },
  text: `select (extract(epoch from resolved_at - received_at) * 1000)::float8 as ms from tributary.inbox
          where event_id = $1 and state = 'done'`
})

/** The time from the commit of the event to the landing that resolved it, in milliseconds. */
const settled = (eventId: string) =>
  Statement.run(settledStatement, [eventId]).pipe(
    Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutOrElse({
      duration: eventMaxMs,
      orElse: () => Effect.fail(failed(`event ${eventId} was not processed within ${eventMaxMs / 1000} s`))
    }),
    Effect.map((rows) => rows[0]!.ms)
  )

/** Starts the receiver and the worker, which end with the scope, and waits until they are ready. */
export const startService = Effect.fnUntraced(function* (
  settings: Configuration,
  names: ReadonlyArray<string>,
  more: Pick<Parameters<typeof ServeLayers.service>[2], "more"> = {}
) {
  const warehouse = Layer.succeedContext(yield* Effect.context<Database | SqlClient.SqlClient>())
  const ownership = () => StaticOwnership.make({ ordinal: 0, processes: 1 })
  const options = yield* ServeLayers.service(settings, names, { ...more, warehouse, ownership, hasStored: false })
  // The demo creates its subscriptions, and no other process changes them.
  const service = yield* Serve.start({ ...options, checkInterval: null })
  yield* Effect.raceFirst(service.ready, service.ended).pipe(Effect.mapError(({ message }) => failed(message)))
  return service
})

/** Subscribes a company of the demo to deliveries at this port. */
export const subscribe = Effect.fnUntraced(function* (
  settings: Configuration,
  { name, connector }: SyncCompany,
  port: number
) {
  const company = settings.companies.find((one) => one.name === name)!
  const events = ServedCompanies.eventsOf(company, settings, yield* (yield* Source).deliveries)
  return yield* Subscriptions.ensure(
    { name, connector },
    { url: `https://localhost:${port}/hooks/${name}`, events }
  ).pipe(
    Effect.provide(SigningSecrets.layer([ServedCompanies.secretsOf(company)])),
    Effect.mapError(({ message }) => failed(message))
  )
})

/** Subscribes, changes a record, delivers the event, and waits for the row. Returns the port of the service, too. */
export const transferByWebhook = Effect.fn("DemoWebhook.bringOver")(function* (
  world: DemoWorld,
  certificate: Certificate
) {
  const { demo, reference, say, settings, sources } = world
  const [company] = sources as readonly [SyncCompany]
  yield* demo.trust(reference, certificate.pem)
  const webhooks = { ...settings.webhooks, host: "127.0.0.1", port: 0, tls: certificate.files }
  const { port } = yield* startService({ ...settings, webhooks }, [company.name]).pipe(
    Effect.mapError(({ message }) => failed(message))
  )
  const { subscription } = yield* subscribe(settings, company, port)
  yield* say(`   subscribed to ${subscription.events.join(", ")}`)
  yield* say(`   at ${subscription.url}`)

  const fired = yield* describe(demo.fire(company.connector))
  const { resource, id, field } = fired
  const before = yield* valueOf(world, fired)
  yield* say(`   ${fired.description}`)
  const [delivered] = yield* demo.deliver(reference)
  if (delivered === undefined) return yield* failed("the reference server delivered nothing")
  const { eventId, eventType, status } = delivered
  if (status !== 204) return yield* failed(`the delivery of ${eventType} was answered ${status ?? "not at all"}`)
  const durationMs = yield* settled(eventId)
  const after = yield* valueOf(world, fired)
  if (before === after) return yield* failed(`event ${eventId} was processed, but ${resource} ${id} did not change`)
  yield* say(`   ${eventType} ${eventId} is delivered: signature valid, stored, acknowledged with ${status}`)
  yield* say(
    `   read again and landed ${Math.max(1, Math.round(durationMs))} ms later: ${resource} ${id}, ${field}: ${before} → ${after}`
  )
  const webhook = { eventType, eventId, acknowledgement: status, durationMs, resource, id, field, before, after }
  return { webhook: webhook satisfies TransferResult, port }
}, Effect.scoped)
