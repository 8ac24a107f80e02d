/** The digest of a view's definition, at the end of its comment, by which the next run recognises the view. */
import { createHash } from "node:crypto"

export const of = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16)

export const mark = (comment: string, digest: string): string => `${comment}\n[tributary ${digest}]`

/** The digest in a comment; undefined where it has none. */
export const find = (comment: string | null | undefined): string | undefined =>
  /\[tributary ([0-9a-f]{16})\]$/.exec(comment ?? "")?.[1]
