/**
 * How many connections one process may open, from what the server allows.
 *
 * Promise: a process takes a third of the connections that the server has for its user, so that other programs and
 * further processes still connect. A setting overrides the third. Below {@link connectionsMin} nothing works.
 */
import type pg from "pg"
import * as Effect from "effect/Effect"
import { queryNamed } from "./Connection.ts"
import type { DatabaseError } from "./DatabaseError.ts"
import * as Statement from "./Statement.ts"

export interface ConnectionBudget {
  /** What the server has for this user in this database, for all programs together. */
  readonly allowed: number
  /** What this process opens at most. */
  readonly connections: number
  /** Of these: the pool for ordinary queries… */
  readonly ordinary: number
  /** … those of the dashboard, which reads as another role… */
  readonly pages: number
  /** … and those that land. */
  readonly landings: number
}

/** What a process takes at least, however small the server. */
export const connectionsMin = 8
/** The inbox has two, the locks one, and one is for what a command does alone or the embedded server counts users by. */
const fixed = 4
const ordinaryMin = 2
const ordinaryMax = 6
const pagesMax = 2
/** Below this the dashboard has one connection. */
const pagesShareMin = 12
/** More landings at once are no faster: each is one statement after the other on a core of the server. */
const landingsMax = 16
const shareOfServer = 3

/** What a process opens of so many, or of what its setting says. */
export const budgetOf = (allowed: number, setting: number | null): ConnectionBudget => {
  const share = Math.max(connectionsMin, setting ?? Math.floor(allowed / shareOfServer))
  const ordinary = Math.min(ordinaryMax, Math.max(ordinaryMin, Math.floor(share / 4)))
  const pages = share < pagesShareMin ? 1 : pagesMax
  const landings = Math.min(landingsMax, share - fixed - ordinary - pages)
  return { allowed, connections: fixed + ordinary + pages + landings, ordinary, pages, landings }
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
export const read = (client: pg.Client, setting: number | null): Effect.Effect<ConnectionBudget, DatabaseError> =>
  Effect.map(queryNamed(client, limitsStatement), ([row]) => {
    // -1 is no limit.
    const limits = [row!.server, row!.role, row!.database].filter((limit) => limit >= 0)
    return budgetOf(Math.min(...limits), setting)
  })
