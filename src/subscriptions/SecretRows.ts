/** Queries of `tributary.webhook_secrets`. A row never changes its secret. */
import * as Duration from "effect/Duration"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

/** How long an earlier secret is accepted: an hour longer than the source signs with it. */
export const acceptedHoursOf = (overlap: Duration.Duration): number => Math.ceil(Duration.toHours(overlap)) + 1
/** How long secrets of another token are accepted: its processes may still receive deliveries. */
const otherTokenMs = Duration.toMillis(Duration.days(30))

const acceptedUntil = (overlap: Duration.Duration) => Query.nowPlus(acceptedHoursOf(overlap) * 3_600_000)

/** The accepted secrets of these companies; those in use first, then the newest. */
export const accepted = (companies: Iterable<string>) =>
  control
    .selectFrom("tributary.webhook_secrets")
    .select(["id", "company", "subscription_id as subscription", "sealed", "state"])
    .where("company", "=", Query.anyOf([...companies]))
    .where((is) => is.or([is("state", "<>", "previous"), is("accepted_until", ">", Query.now)]))
    // In the order of the alphabet: current, next, previous.
    .orderBy("state")
    .orderBy("id", "desc")

export type SecretRow = Query.RowOf<typeof accepted>

/** The secrets of a company that are in use. */
export const inUse = (company: string) =>
  control
    .selectFrom("tributary.webhook_secrets")
    .where("company", "=", company)
    .where("state", "in", ["current", "next"])

export const insert = (company: string, subscription_id: string, sealed: Uint8Array, state: "next" | "current") =>
  Query.first(
    control.insertInto("tributary.webhook_secrets").values({ company, subscription_id, sealed, state }).returning("id")
  )

/** Stores a secret under another token. */
export const replaceSealed = (id: bigint, sealed: Uint8Array) =>
  Query.run(control.updateTable("tributary.webhook_secrets").set({ sealed }).where("id", "=", id))

/** Makes a secret the current one, and those before it the previous ones; deletes previous ones that have expired. */
export const promote = (company: string, subscription_id: string, id: bigint, overlap: Duration.Duration) =>
  Query.run(
    control
      .with("expired", (db) =>
        db
          .deleteFrom("tributary.webhook_secrets")
          .where((is) => is.and({ company, state: "previous" }))
          .where("accepted_until", "<=", Query.now)
      )
      .updateTable("tributary.webhook_secrets")
      .set((of) => ({
        state: of
          .case()
          .when("id", "=", id)
          .then("current" as const)
          .else("previous" as const)
          .end(),
        accepted_until: of.case().when("id", "<>", id).then(acceptedUntil(overlap)).end()
      }))
      .where((is) => is.and({ company, subscription_id }))
      .where((is) => is.or([is("state", "<>", "previous"), is("id", "=", id)]))
  )

/** Makes secrets previous ones; those of another token (not in `own`) expire later. */
export const expire = (
  company: string,
  ids: ReadonlyArray<bigint>,
  own: ReadonlyArray<bigint>,
  overlap: Duration.Duration
) =>
  Query.run(
    control
      .updateTable("tributary.webhook_secrets")
      .set((of) => ({
        state: "previous",
        accepted_until: of
          .case()
          .when("id", "=", Query.anyOf(own))
          .then(acceptedUntil(overlap))
          .else(Query.nowPlus(otherTokenMs))
          .end()
      }))
      .where("company", "=", company)
      .where("state", "<>", "previous")
      .where("id", "=", Query.anyOf(ids))
  )

/** Discards a refused secret. */
export const discard = (company: string, id: bigint) =>
  Query.run(control.deleteFrom("tributary.webhook_secrets").where((is) => is.and({ company, id, state: "next" })))

/** Deletes the secrets of a subscription. */
export const forget = (company: string, subscription_id: string) =>
  Query.run(control.deleteFrom("tributary.webhook_secrets").where((is) => is.and({ company, subscription_id })))
