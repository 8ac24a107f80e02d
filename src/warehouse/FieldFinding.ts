/** Findings about fields (`tributary.field_findings`), in words. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

export interface FieldFinding {
  readonly kind: "volatile" | "absent"
  readonly field: string
  readonly rows: number
  /** Full scans in a row that found it. */
  readonly runs: number
}

/** A volatile field is reported after so many full scans in a row. */
export const volatileRunsMin = 3

/** The reported findings of all companies. */
export const read = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<FieldFinding & { readonly companyId: bigint; readonly resource: string }>`
    select company_id as "companyId", resource, kind, field, rows::float8 as rows, runs from tributary.field_findings
     where kind = 'absent' or runs >= ${volatileRunsMin} order by company_id, resource, kind, field`
})

/** A finding in words, and what to do. */
export const partsOf = (
  resource: string,
  { kind, field, rows, runs }: FieldFinding
): { readonly found: string; readonly remedy: string } =>
  kind === "absent"
    ? {
        found: `${resource}.${field}: no record of the last full scan carried it, and ${rows} rows keep an earlier value`,
        remedy: "ask the operator of the service whether the field, or the right to read it, is gone"
      }
    : {
        found: `${resource}.${field}: changed in ${rows} records of a full scan, ${runs} times in a row, which makes a version of each row`,
        remedy: `if the value is not needed, set resources.${resource}.ignore_fields: [${field}]`
      }

/** {@link partsOf} as one line. */
export const describeFinding = (resource: string, finding: FieldFinding): string => {
  const { found, remedy } = partsOf(resource, finding)
  return `${found}; ${remedy}`
}
