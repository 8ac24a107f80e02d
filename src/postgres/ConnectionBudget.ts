/**
 * The number of connections that one process may open, from the limits of the server.
 *
 * Promise: a process takes a third of the connections that the server has for its user, so that other programs and
 * further processes still connect. A setting overrides the third. A process takes {@link connectionsMin} at least.
 */
import * as Effect from "effect/Effect"
import { type Client, queryNamed } from "./driver/Connection.ts"
import type { DatabaseError } from "./DatabaseError.ts"
import * as Statement from "./Statement.ts"

export interface ConnectionBudget {
  /** The maximum of this process: the following, and {@link fixed}. */
  readonly connections: number
  /** For ordinary queries. */
  readonly ordinary: number
  /** For the dashboard, which reads as another role. */
  readonly pages: number
  /** For landings. */
  readonly landings: number
}

/** The minimum of a process, even on a small server. */
export const connectionsMin = 10
/**
 * Two for the inbox, two for the ownership of companies (one that replaces a lost one), one for the locks, and one for a
 * command's own work or the user count of the embedded server.
 */
const fixed = 6
const ordinaryMin = 2
const ordinaryMax = 6
const pagesMax = 2
/** Below this the dashboard has one connection. */
const pagesShareMin = 12
/** More concurrent landings are no faster: each runs one statement after the other on a core of the server. */
const landingsMax = 16
const shareOfServer = 3

/** The budget of a process, from the allowed connections or from its setting. */
export const budgetOf = (allowed: number, setting: number | null): ConnectionBudget => {
  const share = Math.max(connectionsMin, setting ?? Math.floor(allowed / shareOfServer))
  const ordinary = Math.min(ordinaryMax, Math.max(ordinaryMin, Math.floor(share / 4)))
  const pages = share < pagesShareMin ? 1 : pagesMax
  const landings = Math.min(landingsMax, share - fixed - ordinary - pages)
  return { connections: fixed + ordinary + pages + landings, ordinary, pages, landings }
}

export const limitsStatement = Statement.make({
  name: "read the limits of connections",
  columns: { server: "int4", role: "int4", database: "int4" },
  text: `select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true), '0')::int as server,
       (select rolconnlimit from pg_roles where rolname = current_user) as role,
       (select datconnlimit from pg_database where datname = current_database()) as database`
})

/** Reads the limits of the server. */
export const read = (client: Client, setting: number | null): Effect.Effect<ConnectionBudget, DatabaseError> =>
  Effect.map(queryNamed(client, limitsStatement), ([row]) => {
    // -1 is no limit.
    const limits = [row!.server, row!.role, row!.database].filter((limit) => limit >= 0)
    return budgetOf(Math.min(...limits), setting)
  })
