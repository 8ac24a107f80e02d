/** The privacy rules that the stored values of a resource follow, and since when. */
import type * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

/** Null where the resource never had a rule. */
export const read = (resource: string) =>
  Query.first(
    control
      .selectFrom("tributary.privacy_rules")
      .select(["statement", "applied_at as appliedAt"])
      .where("resource", "=", resource)
  )
export type AppliedRules = NonNullable<Effect.Success<ReturnType<typeof read>>>
