/**
 * Which facts of the documents are named by a wire test, and which are not.
 *
 *   npx node test/conformance/ledger.ts          counts per family, and the facts that no test names
 *   npx node test/conformance/ledger.ts --json   {"total", "named": {fact: [files]}, "unnamed": [fact], "unknown": [id]}
 *
 * `facts.json` is the list of facts, copied once from the documents. A fact is named when its id stands in brackets in
 * a test's title, or as a quoted id in a table from which titles are made.
 */
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

interface Fact {
  readonly id: string
  readonly text: string
}

const here = import.meta.dirname
const facts = JSON.parse(readFileSync(path.join(here, "facts.json"), "utf8")) as Fact[]
const known = new Set(facts.map((fact) => fact.id))
// The families of decisions.md, which titles also name.
const decision = /^([A-L]|X)-\d\d$/

const named = new Map<string, string[]>()
const unknown = new Set<string>()
for (const file of readdirSync(here).sort()) {
  if (!file.endsWith(".ts") || file === "ledger.ts") continue
  const source = readFileSync(path.join(here, file), "utf8")
  for (const match of source.matchAll(/[["]([A-Z]+-\d{2})(?=[\]"])/g)) {
    const id = String(match[1])
    if (!known.has(id)) {
      if (!decision.test(id)) unknown.add(id)
      continue
    }
    const files = named.get(id) ?? []
    if (!files.includes(file)) named.set(id, [...files, file])
  }
}
const unnamed = facts.filter((fact) => !named.has(fact.id))

if (process.argv.includes("--json")) {
  console.log(
    JSON.stringify({
      total: facts.length,
      named: Object.fromEntries(named),
      unnamed: unnamed.map((fact) => fact.id),
      unknown: [...unknown]
    })
  )
} else {
  const families = new Map<string, { all: number; named: number }>()
  for (const fact of facts) {
    const family = fact.id.replace(/-\d+$/, "")
    const count = families.get(family) ?? { all: 0, named: 0 }
    count.all += 1
    if (named.has(fact.id)) count.named += 1
    families.set(family, count)
  }
  for (const [family, count] of families) console.log(`${family.padEnd(28)} ${count.named}/${count.all}`)
  console.log(`\n${named.size} of ${facts.length} facts are named by a test.`)
  if (unknown.size > 0) console.log(`Ids that are neither facts nor decisions: ${[...unknown].join(", ")}`)
  console.log("\nNot named:")
  for (const fact of unnamed) console.log(`- ${fact.id} ${fact.text}`)
}
