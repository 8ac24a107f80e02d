/** A reference server for one test, without a request limit, and a warehouse with the tables of some resources. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Transport } from "../../connectors/service-v2/client/index.ts"
import { Budget } from "../../src/budget/Budget.ts"
import type { Table } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { layerWarehouse } from "./postgres.ts"
import { type ReferenceProcess, startReference } from "./reference.ts"

export class Source extends Context.Service<Source, ReferenceProcess>()("test/support/Source") {}

/** Both, and the services that a client of the server needs. */
export const layerSource = (tables: ReadonlyArray<Table>) =>
  Layer.effect(
    Source,
    Effect.acquireRelease(
      Effect.promise(() => startReference()),
      (server) => Effect.promise(() => server.stop())
    ).pipe(
      Effect.tap((server) => Effect.promise(() => server.control("PUT", "/limits", { requestsPerMinute: 1_000_000 })))
    )
  ).pipe(
    Layer.merge(Layer.effectDiscard(TablePlan.apply(tables))),
    Layer.provideMerge(layerWarehouse),
    Layer.merge(Layer.merge(Transport.layerUndici(), Budget.layerUnlimited))
  )
