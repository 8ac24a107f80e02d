/** The page for people that `tributary serve` shows. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Datasets } from "../model/Table.ts"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Database } from "../postgres/Database.ts"
import type { ShownCompany } from "./Page.ts"

export interface DashboardOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** PEM files; null for plain HTTP. */
  readonly tls: { readonly certificate: string; readonly key: string } | null
  /** Null only where nobody else can reach it. Also the bearer token of programs. */
  readonly password: Redacted.Redacted | null
  /** The address that people use where a proxy stands in front. */
  readonly publicUrl: string | null
  readonly datasets: Datasets
  readonly version: string
}

export interface Dashboard {
  readonly url: string
  /** Gives the pages their warehouse and companies for as long as it runs; without, they say that the warehouse is away. */
  readonly within: (
    companies: ReadonlyArray<ShownCompany>
  ) => Effect.Effect<never, never, Database | SqlClient.SqlClient>
}
