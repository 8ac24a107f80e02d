/** The last comparison of each installation with the documentation (`tributary radar`). */
import * as Effect from "effect/Effect"
import type { RadarReport, RadarSetting } from "../connector/Radar.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

/** A difference by its check and its subject. */
type Differences = ReadonlyArray<string>

export interface Comparison {
  readonly company: string
  readonly comparedAt: Date
  readonly differences: Differences
  /** The differences of the comparison before; null for the first one. */
  readonly before: Differences | null
  readonly recommended: ReadonlyArray<RadarSetting>
}

const differencesOf = ({ differences }: Pick<RadarReport, "differences">): Differences =>
  [...new Set(differences.map(({ check, subject }) => (subject === "" ? check : `${check} of ${subject}`)))].sort()

/** By installation; null is the one that the top level describes. */
export const read = Effect.map(
  Query.run(
    control
      .selectFrom("tributary.comparisons")
      .select(["installation", "company", "compared_at", "differences", "before", "recommended"])
  ),
  (rows) =>
    new Map(
      rows.map((row): readonly [string | null, Comparison] => [
        row.installation === "" ? null : row.installation,
        {
          company: row.company,
          comparedAt: row.compared_at,
          differences: row.differences,
          before: row.before,
          recommended: row.recommended as ReadonlyArray<RadarSetting>
        }
      ])
    )
)

/** Stores a comparison that was complete. */
export const save = (
  installation: string | null,
  company: string,
  report: Pick<RadarReport, "differences" | "settings">
) => {
  const differences = differencesOf(report)
  const recommended = JSON.stringify(report.settings)
  return Query.run(
    control
      .insertInto("tributary.comparisons")
      .values({ installation: installation ?? "", company, differences, recommended })
      .onConflict((conflict) =>
        conflict.column("installation").doUpdateSet((is) => ({
          company,
          compared_at: Query.now,
          differences,
          before: is.ref("tributary.comparisons.differences"),
          recommended
        }))
      )
  )
}
