/** The read model of quarantine entries. */
import type * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

export type EntryState = "open" | "resolved" | "all"

export interface Filter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly state: EntryState
  /** The run that saw the entry last. */
  readonly runId?: bigint | null
}

const entries = control
  .selectFrom("tributary.quarantine")
  .select(["id", "company_id as companyId", "resource", "record_id as recordId", "field", "reason"])
  .select(["first_seen_at as firstSeenAt", "last_seen_at as lastSeenAt", "resolved_at as resolvedAt"])
  .select((of) => of.cast<number>("times", "float8").as("times"))
export type ListedEntry = Query.RowOf<typeof entries>

/** The newest entries below an id, newest first. */
export const list = ({ companyId, resource, runId = null, state }: Filter, before: bigint | null, entriesMax: number) =>
  Query.run(
    entries
      .where((is) => is.and(Query.given({ company_id: companyId, resource, run_id: runId })))
      .$if(state !== "all", (all) => all.where("resolved_at", state === "open" ? "is" : "is not", null))
      .$if(before !== null, (all) => all.where("id", "<", before))
      .orderBy("id", "desc")
      .limit(entriesMax)
  )

/** The number of open entries of a resource. */
export type OpenEntries = Effect.Success<ReturnType<typeof open>>[number]

/** The numbers of open entries by company and resource, the most first. */
export const open = (rowsMax: number) =>
  Query.run(
    control
      .selectFrom("tributary.quarantine")
      .select((of) => ["company_id as companyId", "resource", of.cast<number>(of.fn.countAll(), "float8").as("open")])
      .where("resolved_at", "is", null)
      .groupBy(["company_id", "resource"])
      .orderBy("open", "desc")
      .orderBy("company_id")
      .orderBy("resource")
      .limit(rowsMax)
  )

/** One entry, its bytes as sent, cut to a maximum; null when there is none. */
export const one = (id: bigint, charactersMax: number) =>
  Query.first(
    entries
      .select((of) => [
        "run_id as runId",
        "source",
        of.fn<string>("left", ["bytes", of.val(charactersMax)]).as("bytes"),
        of.fn<number>("length", ["bytes"]).as("characters"),
        of(of.fn<number>("length", ["bytes"]), ">", charactersMax).as("isCut")
      ])
      .where("id", "=", id)
  )
export type Entry = NonNullable<Effect.Success<ReturnType<typeof one>>>

/** The newest open entry of a record. */
export const newestOpen = (companyId: bigint, resource: string, recordId: string) =>
  Query.first(
    entries
      .where((is) => is.and({ company_id: companyId, resource }))
      .where((is) => is(is.fn.coalesce("record_id", is.val("")), "=", recordId))
      .where("resolved_at", "is", null)
      .orderBy("last_seen_at", "desc")
      .orderBy("id", "desc")
      .limit(1)
  )
