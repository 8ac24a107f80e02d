/**
 * The writes of a push in one transaction.
 *
 * Promise: the resolutions of rows, the records that the source answered and the end of the request are committed
 * together, or not at all.
 */
import type * as Effect from "effect/Effect"
import type { ObservedPage } from "../land/Landing.ts"
import type { LandingError } from "../land/LandingError.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { RunSql } from "./OutboxRow.ts"
import type { ClosedRequest, NewRequest, PushRequest } from "./RequestStore.ts"
import type { ResolvedRow } from "./RowResolution.ts"

export interface Commit {
  /** The request that ends with it; null when the rows are in none. */
  readonly closed: ClosedRequest | null
  readonly rows: ReadonlyArray<ResolvedRow>
  /** The written records, as the answer shows them. */
  readonly echo?: ReadonlyArray<ObservedPage>
  /** The next requests of its rows, under new keys. */
  readonly next?: ReadonlyArray<NewRequest>
}

/** The resolution of a request. */
export interface RequestResolution extends Commit {
  readonly closed: ClosedRequest
  /** The state of the source that the result shows. */
  readonly source: "works" | "fails" | "unknown"
}

/** Selects rows for at most `limit` requests, in the transaction that stores the requests. */
export type SelectRequests = (run: RunSql, limit: number) => Effect.Effect<ReadonlyArray<NewRequest>, DatabaseError>

/** A commit, or a request to be stored, that waits for its transaction. */
export interface CommitJob {
  readonly commit: Commit | null
  readonly select: SelectRequests | null
  requests: ReadonlyArray<PushRequest>
  /** Null until the transaction has ended. */
  result: Effect.Effect<void, LandingError> | null
}
