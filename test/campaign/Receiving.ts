/**
 * The installation of a webhook campaign: its connected companies and its warehouse. The receiving process and the
 * campaign build it separately.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient, Transport } from "../../connectors/service-v2/client/index.ts"
import { eventName } from "../../connectors/service-v2/catalogue/events.ts"
import { Budget } from "../../src/budget/Budget.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import { engineDefault } from "../../src/sync/EngineSettings.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import type { Company } from "../../src/sync/Company.ts"

/** The settings of a receiving process, as JSON in the environment variable {@link settingsVariable}. */
export interface Settings {
  readonly databaseUrl: string
  readonly baseUrl: string
  readonly port: number
  readonly companies: ReadonlyArray<{ readonly name: string; readonly token: string; readonly secret: string }>
}

export const settingsVariable = "RECEIVING"

/** Resources with a stamp and without, with parents and children, readable by id. */
export const resources = ["salesmen", "customers", "items", "vendors", "areas", "orders", "orderlines"]

export const tables = new Map(resources.map((path) => [path, tableOf(serviceV2.resources.get(path)!)] as const))

export const events: ReadonlyArray<string> = resources.flatMap((path) =>
  (["created", "updated", "cancelled"] as const).map((verb) => eventName(serviceV2.resources.get(path)!, verb))
)

export const warehouse = (databaseUrl: string) =>
  sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(databaseUrl))))

export const company = ({ baseUrl }: Pick<Settings, "baseUrl">, { name, token }: Settings["companies"][number]) =>
  ServiceClient.make({ baseUrl, token: Redacted.make(token), catalogue: serviceV2, pageSize: 100 }).pipe(
    Effect.map((connector): Company => ({
      name,
      connector,
      tables: Effect.succeed(tables),
      engine: engineDefault,
      batchRecordsMax: 2_500,
      events
    }))
  )

export const source = Layer.merge(Transport.layerUndici(), Budget.layerUnlimited)
