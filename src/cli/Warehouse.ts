/**
 * The warehouse of a command: the database that the configuration names, with the control plane's tables up to date.
 */
import { join } from "node:path"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Budgets from "../budget/Budgets.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import * as ReadFile from "../files/ReadFile.ts"
import { ReaderOptions } from "../warehouse/Reader.ts"
import { datasetsDefault } from "../warehouse/Table.ts"
import { Database, sqlLayer } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { parseUrl } from "../postgres/DatabaseUrl.ts"
import { binaries } from "../postgres/embedded/DataDirectory.ts"
import type { EmbeddedPostgresError } from "../postgres/EmbeddedPostgres.ts"
import * as Migrations from "../postgres/Migrations.ts"
import * as PageSizeStore from "../sync/PageSizeStore.ts"

/** What all processes on a warehouse share: the rate budgets of tokens, and the page sizes of sources. */
export const sharedLayer = Layer.merge(Budgets.layerPostgres, PageSizeStore.layer)

/** The settings of a warehouse: its server, its reader and the connections of a process. */
type WarehouseLocation = Pick<Configuration, "databaseUrl" | "dataDirectory"> &
  Partial<Pick<Configuration, "readerUrl" | "datasets" | "connectionsMax" | "embeddedPort">> & {
    /** A database without warehouse is a failure. Otherwise it becomes one. */
    readonly mustExist?: boolean
  }

export type WarehouseError = DatabaseError | EmbeddedPostgresError | Migrations.MigrationError

/** The folder of the embedded server. */
export const embeddedRoot = ({ dataDirectory }: Pick<Configuration, "dataDirectory">): string =>
  join(dataDirectory, "postgres")

/** Whether there is a warehouse, or a server that may have one. */
export const exists = (location: WarehouseLocation): Effect.Effect<boolean, ReadFile.FileProblem> => {
  const root = embeddedRoot(location)
  return location.databaseUrl !== null ? Effect.succeed(true) : ReadFile.attempt(root, () => ReadFile.exists(root))
}

/** Fails where the server cannot be used as configured: its address is invalid, or there is no embedded one. */
export const requireServer = ({ databaseUrl }: WarehouseLocation): Effect.Effect<void, WarehouseError> =>
  databaseUrl === null ? Effect.asVoid(binaries) : Effect.asVoid(parseUrl(databaseUrl))

/** The server; nothing is migrated. */
export const databaseLayer = (location: WarehouseLocation): Layer.Layer<Database, WarehouseError> => {
  const { connectionsMax = null, databaseUrl, embeddedPort: port } = location
  return databaseUrl === null
    ? Database.layerEmbedded({ root: embeddedRoot(location), port, connectionsMax })
    : Database.layerUrl(databaseUrl, { connectionsMax })
}

/**
 * Connects and migrates, or makes the control plane. Without `DATABASE_URL`, it starts the embedded Postgres. Connectors made within this layer
 * share the rate budget of their token, and the page sizes of their source, with every process on the same warehouse.
 */
export const layer = (
  configuration: WarehouseLocation
): Layer.Layer<Database | PgClient.PgClient | SqlClient.SqlClient, WarehouseError> => {
  const migrated = Layer.effectDiscard(Migrations.ensure({ mustExist: configuration.mustExist }))
  const sql = migrated.pipe(Layer.provideMerge(sqlLayer), Layer.provideMerge(databaseLayer(configuration)))
  const { readerUrl: url = null, datasets = datasetsDefault } = configuration
  const reader = Layer.succeed(ReaderOptions, { url, datasets })
  return sharedLayer.pipe(Layer.provideMerge(sql), Layer.provideMerge(reader))
}

/** The data directory of the demo's own warehouse, apart from real records. */
export const demoDirectory = ({ dataDirectory }: Pick<Configuration, "dataDirectory">): string =>
  join(dataDirectory, "demo")

/** The warehouse's failures as one sentence with its remedy. */
export const describe = (error: WarehouseError | ReadFile.FileProblem): string =>
  error._tag === "EmbeddedPostgresError" && error.hint !== undefined ? `${error.message}; ${error.hint}` : error.message

/** The place of a warehouse with or without `--demo`. */
export const locationOf = (configuration: Configuration, demo: boolean): WarehouseLocation =>
  demo
    ? {
        databaseUrl: null,
        dataDirectory: demoDirectory(configuration),
        datasets: configuration.datasets,
        embeddedPort: configuration.embeddedPort
      }
    : configuration

export const provide = <A, E, R>(effect: Effect.Effect<A, E, R>, configuration: WarehouseLocation) =>
  Effect.provide(effect, layer(configuration))
