/** A company as the webhook side works with it: what to ask, and what its rows look like. */
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { Table } from "../warehouse/Table.ts"
import type { EngineSettings } from "./SyncResource.ts"

export { childrenOf } from "../warehouse/Table.ts"

export interface Company {
  /** As the configuration calls it; the last part of the address that deliveries are sent to. */
  readonly name: string
  readonly connector: ConnectorShape
  /** The tables of the resources that are synced, by path, with the columns inferred so far; read anew at each use. */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, SqlError>
  readonly engine: EngineSettings
  readonly batchRecordsMax: number
  /** What the token's budget allows; null or absent is no limit. */
  readonly requestsPerMinute?: number | null
  /** The events that are wanted. */
  readonly events: ReadonlyArray<string>
}
