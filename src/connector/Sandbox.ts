/**
 * The part of a connector for sandboxes: a reference server that holds the records of a company of the warehouse.
 *
 * Promise: the real source gets no request.
 */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Stream from "effect/Stream"
import type { Reference, ReferenceFailed } from "./Demo.ts"

export interface Sandbox {
  /**
   * Gives a company exactly these records of a resource, in place of those that the server has of it. Each is the JSON text
   * of a record. Returns their number; null where the server does not have the resource.
   */
  readonly replace: <E, R>(
    reference: Reference,
    companyId: bigint,
    resource: string,
    records: Stream.Stream<string, E, R>
  ) => Effect.Effect<number | null, ReferenceFailed | E, R>
  /** Issues a token with all rights in the company. */
  readonly issueToken: (reference: Reference, companyId: bigint) => Effect.Effect<Redacted.Redacted, ReferenceFailed>
}
