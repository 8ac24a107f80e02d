/** Bugs of code that rests on the reader's session: it would be correct if a replica were never behind. */
import type { Mutants } from "./Mutant.ts"

export const reader: Mutants = {
  "reader-is-not-behind": {
    why: ["a decision on a replica that is behind", "a snapshot that begins after the commit of the mark has the mark"],
    file: "src/warehouse/ReaderMark.ts",
    find: "    if (row?.isSeen === true) return\n",
    replace: "    if (row !== undefined) return\n"
  }
}
