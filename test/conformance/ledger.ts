/**
 * The ledger of facts: those that a wire test names, those that are refused with a reason, and those that are neither.
 *
 *   npx node test/conformance/ledger.ts          counts per family, the refused facts, and the untested ones
 *   npx node test/conformance/ledger.ts --json   {"total", "named": {fact: [files]}, "refused": {fact: reason}, "untested": [fact], "unknown": [id]}
 *
 * It ends with 1 when a fact is untested, when an id is not a fact, or when a test names a refused fact.
 *
 * `facts.json` is the list of facts, copied once from the documents. A fact is named when its id is in brackets in a
 * test's title, or is a quoted id in a table from which titles are made. `refused.json` contains the facts that no wire
 * test can name, each with the reason. `run.ts` reports the results of the tests.
 */
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

export interface Fact {
  readonly id: string
  readonly text: string
}

export interface Ledger {
  readonly facts: readonly Fact[]
  readonly named: ReadonlyMap<string, readonly string[]>
  readonly refused: Readonly<Record<string, string>>
  readonly untested: readonly Fact[]
  /** Ids that are neither facts nor decisions. */
  readonly unknown: readonly string[]
  /** Facts that are refused and named. */
  readonly both: readonly string[]
}

const here = import.meta.dirname
// The families of decisions.md, which titles also name.
const decision = /^([A-L]|X)-\d\d$/

/** The ids that a title names. */
export function idsIn(title: string): string[] {
  return [...title.matchAll(/\[([A-Z]+-\d{2})\]/g)].map((match) => String(match[1]))
}

export function readLedger(): Ledger {
  const facts = JSON.parse(readFileSync(path.join(here, "facts.json"), "utf8")) as Fact[]
  const refused = JSON.parse(readFileSync(path.join(here, "refused.json"), "utf8")) as Record<string, string>
  const factIds = new Set(facts.map((fact) => fact.id))
  const named = new Map<string, string[]>()
  const unknown = new Set(Object.keys(refused).filter((id) => !factIds.has(id)))
  for (const file of readdirSync(here).sort()) {
    if (!file.endsWith(".ts") || file === "ledger.ts" || file === "run.ts") continue
    const source = readFileSync(path.join(here, file), "utf8")
    for (const match of source.matchAll(/[["]([A-Z]+-\d{2})(?=[\]"])/g)) {
      const id = String(match[1])
      if (!factIds.has(id)) {
        if (!decision.test(id)) unknown.add(id)
        continue
      }
      const files = named.get(id) ?? []
      if (!files.includes(file)) named.set(id, [...files, file])
    }
  }
  return {
    facts,
    named,
    refused,
    untested: facts.filter((fact) => !named.has(fact.id) && refused[fact.id] === undefined),
    unknown: [...unknown],
    both: Object.keys(refused).filter((id) => named.has(id))
  }
}

function print(ledger: Ledger): void {
  const families = new Map<string, { all: number; named: number; refused: number }>()
  for (const fact of ledger.facts) {
    const family = fact.id.replace(/-\d+$/, "")
    const count = families.get(family) ?? { all: 0, named: 0, refused: 0 }
    count.all += 1
    if (ledger.named.has(fact.id)) count.named += 1
    else if (ledger.refused[fact.id] !== undefined) count.refused += 1
    families.set(family, count)
  }
  for (const [family, count] of families) {
    const note = count.refused === 0 ? "" : `, ${count.refused} refused`
    console.log(`${family.padEnd(28)} ${count.named}/${count.all}${note}`)
  }
  const refused = Object.entries(ledger.refused)
  console.log(`\ntotal            ${ledger.facts.length}`)
  console.log(`named by tests   ${ledger.named.size}`)
  console.log(`refused          ${refused.length}`)
  console.log(`untested         ${ledger.untested.length}`)
  console.log("\nRefused:")
  for (const [id, reason] of refused) console.log(`- ${id} ${reason}`)
  if (ledger.untested.length > 0) console.log("\nUntested:")
  for (const fact of ledger.untested) console.log(`- ${fact.id} ${fact.text}`)
  if (ledger.unknown.length > 0) console.log(`\nIds that are neither facts nor decisions: ${ledger.unknown.join(", ")}`)
  if (ledger.both.length > 0) console.log(`\nRefused, and yet named by a test: ${ledger.both.join(", ")}`)
}

if (import.meta.main) {
  const ledger = readLedger()
  if (process.argv.includes("--json")) {
    console.log(
      JSON.stringify({
        total: ledger.facts.length,
        named: Object.fromEntries(ledger.named),
        refused: ledger.refused,
        untested: ledger.untested.map((fact) => fact.id),
        unknown: ledger.unknown,
        both: ledger.both
      })
    )
  } else print(ledger)
  process.exitCode = ledger.untested.length + ledger.unknown.length + ledger.both.length > 0 ? 1 : 0
}
