/** Bugs of code that rests on the reader's session: it would be correct if a replica were never behind. */
import type { Mutant } from "./Mutant.ts"

export const reader: ReadonlyArray<Mutant> = [
  {
    name: "reader-is-not-behind",
    origin: "a decision on a replica that is behind",
    story: "a snapshot that begins after the commit of the mark has the mark",
    file: "src/warehouse/ReaderMark.ts",
    find: "    if (row?.isSeen === true) return\n",
    replace: "    if (row !== undefined) return\n"
  }
]
