/** The parts of rows that a test compares. */

/** The value of this field of each row. */
export const valuesOf = <Row, Name extends keyof Row>(rows: ReadonlyArray<Row>, name: Name): Array<Row[Name]> =>
  rows.map((row) => row[name])

/** The values of these fields of each row. */
export const cellsOf = <Row, Name extends keyof Row>(
  rows: ReadonlyArray<Row>,
  ...names: ReadonlyArray<Name>
): Array<Array<Row[Name]>> => rows.map((row) => names.map((name) => row[name]))
