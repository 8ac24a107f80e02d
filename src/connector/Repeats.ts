/**
 * A bound on pages without new records. A source that goes on with fresh page tokens, and has no records or repeats
 * them, never ends: so many such pages in a row are the end.
 */
import { createHash } from "node:crypto"

export const emptyPagesMax = 200

/** Tells whether a page, given by what identifies its records, has some and not exactly those of an earlier page. */
export const makeNews = () => {
  const met = new Set<string>()
  return (page: ReadonlyArray<string | null>): boolean => {
    const size = met.size
    if (page.length > 0) met.add(createHash("sha1").update(page.join(" ")).digest("base64"))
    return met.size > size
  }
}
