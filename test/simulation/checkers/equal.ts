/** I7 and I8: after healing, the warehouse and the source are equal, both ways. */
import { differing } from "./Canonical.ts"
import { type CheckerOf, type Final, keyOf } from "./Checker.ts"

/** The ids that differ, each with a sentence. */
export const differences = (
  { source, kept }: Parameters<CheckerOf>[0],
  { subjects, odd }: Pick<Final, "subjects" | "odd">
): ReadonlyMap<string, string> => {
  const sentences = new Map<string, string>()
  for (const { company, resource, rows, quarantine } of subjects) {
    const missing = new Map([...rows].filter(([, row]) => !row.deleted))
    for (const text of source.state(company, resource.path)) {
      const expected = kept(company, resource, text)
      const id = expected.fields[resource.fields.findIndex(({ name }) => name === "id")]!
      const key = keyOf(company, resource.path, id)
      const row = missing.get(id)
      missing.delete(id)
      // A record that cannot be landed must be in quarantine, as it was sent.
      if (odd.has(key)) {
        if (!quarantine.some((one) => one.id === id)) sentences.set(key, "cannot be landed and is not in quarantine")
        continue
      }
      const wrongly = quarantine.find((one) => one.id === id)
      if (wrongly !== undefined)
        sentences.set(
          key,
          `is in quarantine, and nothing is wrong with it: ${wrongly.reason}: ${wrongly.bytes.slice(0, 300)}`
        )
      else if (row === undefined) sentences.set(key, "is in the source and not in the warehouse")
      else if (row.kept.whole !== expected.whole) {
        const fields = differing(resource, expected, row.kept)
        const index = resource.fields.findIndex(({ name }) => name === fields[0])
        sentences.set(
          key,
          `differs in ${fields.join(", ")}: ${expected.fields[index] ?? expected.extra.get(fields[0]!)} in the source, ` +
            `${row.kept.fields[index] ?? row.kept.extra.get(fields[0]!)} in the warehouse`
        )
      }
    }
    for (const id of missing.keys()) {
      const key = keyOf(company, resource.path, id)
      if (!odd.has(key)) sentences.set(key, "is in the warehouse and not in the source")
    }
  }
  return sentences
}

export const equal: CheckerOf = (setting) => ({
  name: "equal",
  holds:
    "I7, I8, I9: after healing every record is in the warehouse with all its values or in quarantine, and nothing else is",
  healed: (final) => {
    for (const [key, what] of differences(setting, final)) {
      if (!final.full && final.excused.has(key)) continue
      return `${key} ${what} (after ${final.cycles} cycles${final.full ? " and a full scan" : ""})`
    }
    return null
  }
})
