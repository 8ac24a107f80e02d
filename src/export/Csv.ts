/** Rows of CSV with the quotes of RFC 4180, whose lines end with LF, as Postgres' COPY writes them. */

/** Null is an empty cell, and an empty text is quoted. */
export const csvCell = (text: string | null): string =>
  text === null ? "" : text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text

export const csvRow = (cells: ReadonlyArray<string | null>): string => cells.map(csvCell).join(",")
