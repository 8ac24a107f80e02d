/**
 * What to do about an error of Postgres, by its SQLSTATE or the class of that.
 *
 * Promise: a remedy says nothing about the cause that the code does not say.
 */
import type { DatabaseError } from "./DatabaseError.ts"

/** SQLSTATE, else its first two characters. */
const remedies: Readonly<Record<string, string>> = {
  "08": "check that the database server runs and the network to it, then run this again",
  "0A": "the server lacks a feature that the warehouse needs: use Postgres 14 to 18",
  "23": "remove the row or the constraint that the message names, where it was added by hand, then run this again",
  "25006":
    "the session only reads: DATABASE_URL names a standby, or default_transaction_read_only is on; name the primary, or turn it off",
  "25P03": "raise idle_in_transaction_session_timeout of the login, then run this again",
  "25P04": "raise transaction_timeout of the login, then run this again",
  "28": "check user and password in DATABASE_URL, and pg_hba.conf of the server",
  "2BP01": "drop what depends on it, which the message names, then run this again",
  "3D": "create the database, or correct its name in DATABASE_URL",
  "40": "run this again",
  "42501": "grant the login the right that the message names (tributary doctor checks the rights), then run this again",
  "53": "the database server lacks a resource, which the message names: provide it, then run this again",
  "53100": "the disk of the database server is full: free space there or enlarge it, then run this again",
  "53200":
    "the database server is out of memory: give it more, or lower work_mem and max_connections, then run this again",
  "53300":
    "the server has no connection left: close other programs, or raise max_connections or the limit of the role or database",
  "53400": "a limit of the role or the server is reached, which the message names, such as temp_file_limit: raise it",
  "54": "a fixed limit of Postgres is reached, which the message names: configure less for this table",
  "55000": "the object cannot be used in this state: see the message, and the log of the database server",
  "55006": "another session uses the object: run this again when it has ended",
  "55P03": "another session has locked a table: run this again when it has ended",
  "57014":
    "the statement was canceled, by a person or a time limit that the message names: raise that limit, or run this again",
  "57P01": "the server or a person ended the session: run this again once the server runs",
  "57P02": "a session of the server crashed: run this again; the log of the server names the reason",
  "57P03": "the server is starting, stopping or recovering: run this again in a moment",
  "57P04": "the database was dropped: create it, or correct its name in DATABASE_URL",
  "57P05": "raise idle_session_timeout of the login, then run this again",
  "58": "the server cannot use a file of its own: check its disk and its log; where a file is lost, restore a backup",
  "58030": "the disk of the database server fails or is full: check the disk and the log of the server",
  P0: "a function or a trigger of the database raised this error: correct or drop it, then run this again",
  XX001: "a table of the database is damaged: stop writing, find the extent with pg_amcheck, and restore a backup",
  XX002: "an index of the database is damaged: rebuild it (reindex), and check the disk of the server"
}

/** Undefined table, column, function and schema, and no primary key for ON CONFLICT. */
const damagedStates = new Set(["42P01", "42703", "42883", "3F000", "42P10"])

/** Whether a table, column or key of the warehouse is missing. */
export const isDamage = ({ code }: Pick<DatabaseError, "code">): boolean =>
  code !== undefined && damagedStates.has(code)

const damaged =
  "a part of the warehouse is missing or was restored in part. Run tributary sync, which creates missing tables of " +
  "records again. If that ends in the same way, restore the dataset tributary whole from a backup, or drop it (drop " +
  "schema tributary cascade): the next sync creates it again and reads every record. Rows that wait to be pushed, and " +
  "webhook secrets, are dropped with it"

const isSqlState = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code)

/** What to do about an error; null where its code does not say. */
export const remedyOf = (error: Pick<DatabaseError, "code">): string | null => {
  const { code = "" } = error
  if (isDamage(error)) return damaged
  // An errno, such as ECONNREFUSED.
  const state = /^E[A-Z]{3,}$/.test(code) ? "08" : code
  return isSqlState(state) || state === "08" ? (remedies[state] ?? remedies[state.slice(0, 2)] ?? null) : null
}

/** Where the code of an error does not say what to do. */
export const readLog = "read the log of the database server, then run this again"

/** Whether the server lacks a resource, was stopped, or cannot use its files: the program and its settings are not the cause. */
export const isServerFault = ({ code = "" }: Pick<DatabaseError, "code">): boolean =>
  isSqlState(code) && /^(?:53|57|58|XX)/.test(code)
