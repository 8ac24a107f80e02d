/**
 * A limit for pages without new records. A source may return fresh page tokens for ever, with no records or repeated
 * ones. A scan ends after this many such pages in a row.
 */
import { createHash } from "node:crypto"

export const emptyPagesMax = 200

/** Whether a page, given by the keys of its records, has records that are not exactly those of an earlier page. */
export const makeNews = () => {
  const met = new Set<string>()
  return (page: ReadonlyArray<string | null>): boolean => {
    const size = met.size
    if (page.length > 0) met.add(createHash("sha1").update(page.join(" ")).digest("base64"))
    return met.size > size
  }
}
