/** A company of `tributary serve`: its source, its tables and its settings. */
import type * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { Table } from "../warehouse/Table.ts"
import type { EngineSettings } from "./EngineSettings.ts"

export interface Company {
  /** Its name in the configuration, and the last part of its hook URL. */
  readonly name: string
  readonly connector: ConnectorShape
  /**
   * The tables of the resources that are synced, by path, with their inferred columns; read again at each use. Companies
   * with the same resources have the same effect.
   */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, DatabaseError>
  readonly engine: EngineSettings
  readonly batchRecordsMax: number
  /** The limit of the token's budget; null or absent is no limit. */
  readonly requestsPerMinute?: number | null
  /** The subscribed events. */
  readonly events: ReadonlyArray<string>
}
