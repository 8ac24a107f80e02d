/** Findings about fields (`tributary.field_findings`), in words. */
import * as Statement from "../postgres/Statement.ts"
import { plural } from "../text/Count.ts"

/** A volatile field is reported after so many full scans in a row. */
export const volatileRunsMin = 3

/** The reported findings; `runs` counts the full scans in a row that found it. */
export const findingsStatement = Statement.make({
  name: "read the findings about fields",
  columns: {
    companyId: "int8",
    resource: "text",
    kind: Statement.as<"volatile" | "absent">("text"),
    field: "text",
    rows: "float8",
    runs: "int4"
  },
  text: `select company_id as "companyId", resource, kind, field, rows::float8 as rows, runs from tributary.field_findings
          where kind = 'absent' or runs >= ${volatileRunsMin} order by company_id, resource, kind, field`
})

export type FieldFinding = Omit<Statement.RowOf<typeof findingsStatement>, "companyId" | "resource">

/** The reported findings of all companies. */
export const read = Statement.run(findingsStatement)

/** A finding in words, and what to do. */
export const partsOf = (
  resource: string,
  { kind, field, rows, runs }: FieldFinding
): { readonly found: string; readonly remedy: string } =>
  kind === "absent"
    ? {
        found: `${resource}.${field}: no record of the last full scan carried it, and ${plural(rows, "row keeps", "rows keep")} an earlier value`,
        remedy: "ask the operator of the service whether the field, or the right to read it, is gone"
      }
    : {
        found: `${resource}.${field}: changed in ${plural(rows, "record")} of a full scan, ${plural(runs, "time")} in a row, which creates a version of each row`,
        remedy: `if the value is not needed, set resources.${resource}.ignore_fields: [${field}]`
      }

/** {@link partsOf} as one line. */
export const describeFinding = (resource: string, finding: FieldFinding): string => {
  const { found, remedy } = partsOf(resource, finding)
  return `${found}; ${remedy}`
}
