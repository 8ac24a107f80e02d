/** The rules about the records that the file states. */
import * as ReadFile from "../files/ReadFile.ts"
import { type Invariant, resourcesOf } from "../invariants/Invariant.ts"
import { split } from "../warehouse/SqlFile.ts"
import type { Inputs } from "./Inputs.ts"

/** The SQL of a file, or why it cannot be read. */
const readFile = (file: string): { readonly sql: string } | { readonly problem: string } => {
  try {
    return { sql: ReadFile.text(file) }
  } catch (error) {
    return { problem: ReadFile.problemOf(file, error).message }
  }
}

export const invariantsOf = ({ place, problems, settings }: Inputs): ReadonlyArray<Invariant> => {
  const names = settings.invariants.map(({ name }) => name)
  return settings.invariants.flatMap(({ name, severity, statement, sql, file, resources }, index) => {
    const wrong = (key: string, mistake: string): ReadonlyArray<Invariant> => {
      problems.push(`${place("invariants", index, key)}: ${mistake}`)
      return []
    }
    if (names.indexOf(name) !== index) return wrong("name", `another rule has the name ${name}`)
    if ((sql === null) === (file === null)) return wrong("name", "set either sql or file")
    const read = file === null ? { sql: sql! } : readFile(file)
    if ("problem" in read) return wrong("file", read.problem)
    const { comment, sql: written } = split(read.sql)
    const found = resourcesOf(written, resources)
    if (typeof found === "string") return wrong(file === null ? "sql" : "file", found)
    const line = statement ?? comment[0] ?? name
    return [
      {
        name,
        severity,
        statement: line,
        comment: comment.length === 0 ? line : comment.join("\n").trim(),
        resources: found,
        // The query is a part of another one.
        sql: written.trim().replace(/;\s*$/, "")
      }
    ]
  })
}
