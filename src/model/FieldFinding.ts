/** What completed full scans found out about a field (`tributary.field_findings`), in words. */

export interface FieldFinding {
  readonly kind: "volatile" | "absent"
  readonly field: string
  readonly rows: number
  /** Full scans in a row that found it. */
  readonly runs: number
}

/** Of fewer full scans in a row a volatile field is not told. */
export const volatileRunsMin = 3

/** Whether people are told of it. */
export const isTold = ({ kind, runs }: FieldFinding): boolean => kind === "absent" || runs >= volatileRunsMin

/** A finding in words, with what to do. */
export const tellFinding = (
  resource: string,
  finding: {
    readonly kind: "volatile" | "absent"
    readonly field: string
    readonly rows: number
    readonly runs: number
  }
): string =>
  finding.kind === "absent"
    ? `${resource}.${finding.field}: no record of the last full scan carried it, and ${finding.rows} rows keep an earlier ` +
      "value; ask whoever runs the service whether the field or the right to read it is gone"
    : `${resource}.${finding.field}: changed in ${finding.rows} records of a full scan that did not change otherwise, ` +
      `${finding.runs} times in a row: each run writes a version of every row; if nobody needs the value, set ` +
      `resources.${resource}.ignore_fields: [${finding.field}]`
