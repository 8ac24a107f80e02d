/**
 * The command `npm run conformance`: every wire test, and the resulting status of every fact of the documents.
 *
 *   npm run conformance                                 against servers that the tests start themselves
 *   … run.ts --json                                     the same as one JSON document
 *   … run.ts webhooks rules                             only the files whose names contain one of these
 *
 * A fact is implemented when tests name it and all of them pass; failing when one of them fails; refused when
 * `refused.json` states why no wire test can name it; otherwise untested. It ends with 1 when a test fails or, in a
 * whole run, when a fact is untested.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { FACTS, idsIn, readLedger, REFUSED } from "./facts.ts"

interface Assertion {
  readonly fullName: string
  readonly title: string
  readonly status: string
  readonly failureMessages?: readonly string[]
}

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly message?: string
    readonly assertionResults: readonly Assertion[]
  }>
}

const repository = path.resolve(import.meta.dirname, "../..")
const json = process.argv.includes("--json")
const fileNames = process.argv.slice(2).filter((each) => !each.startsWith("--"))

// Dots for a terminal.
const live = !json && process.stdout.isTTY

function vitest(report: string): Promise<number> {
  const files = fileNames.length === 0 ? ["test/conformance/"] : fileNames.map((each) => `test/conformance/${each}`)
  const args = [
    path.join(repository, "node_modules/vitest/vitest.mjs"),
    "run",
    ...files,
    "--config",
    "config/vitest.config.ts",
    "--reporter=json",
    `--outputFile=${report}`,
    ...(live ? ["--reporter=dot"] : [])
  ]
  const child = spawn(process.execPath, args, {
    cwd: repository,
    stdio: ["ignore", live ? "inherit" : "ignore", "inherit"]
  })
  return new Promise((resolve, reject) => {
    child.once("error", reject)
    child.once("exit", (code) => resolve(code ?? 1))
  })
}

const directory = mkdtempSync(path.join(tmpdir(), "conformance-"))
try {
  const file = path.join(directory, "report.json")
  const code = await vitest(file)
  if (!existsSync(file)) {
    console.error(`vitest ended with ${code} and left no report`)
    process.exit(1)
  }
  const report = JSON.parse(readFileSync(file, "utf8")) as Report
  tell(report)
} finally {
  rmSync(directory, { recursive: true, force: true })
}

function tell(report: Report): void {
  const ledger = readLedger()
  const whole = fileNames.length === 0
  const counts = new Map<string, { passed: number; failed: string[]; skipped: number }>()
  const failures: string[] = []
  const tests = { passed: 0, failed: 0, skipped: 0 }
  for (const result of report.testResults) {
    const name = path.basename(result.name)
    // A file whose server did not start has failed as a whole, although its tests are only skipped.
    if (result.status === "failed" && !result.assertionResults.some((each) => each.status === "failed")) {
      failures.push(`${name}: ${(result.message ?? "").split("\n")[0] ?? ""}`)
      tests.failed += 1
    }
    for (const each of result.assertionResults) {
      const outcome = each.status === "passed" ? "passed" : each.status === "failed" ? "failed" : "skipped"
      tests[outcome] += 1
      if (outcome === "failed") {
        failures.push(`${name}: ${each.fullName}\n    ${(each.failureMessages?.[0] ?? "").split("\n")[0] ?? ""}`)
      }
      for (const id of new Set(idsIn(each.title))) {
        const count = counts.get(id) ?? { passed: 0, failed: [], skipped: 0 }
        if (outcome === "passed") count.passed += 1
        else if (outcome === "failed") count.failed.push(each.title)
        else count.skipped += 1
        counts.set(id, count)
      }
    }
  }
  const implemented: string[] = []
  const failing: string[] = []
  const refused: string[] = []
  const untested: string[] = []
  for (const id of Object.keys(FACTS)) {
    const count = counts.get(id)
    if (count !== undefined && count.failed.length > 0) failing.push(id)
    else if (count !== undefined && count.passed > 0) implemented.push(id)
    else if (REFUSED[id] !== undefined) refused.push(id)
    else untested.push(id)
  }
  const failed = tests.failed > 0 || (whole && (untested.length > 0 || ledger.both.length > 0))
  process.exitCode = failed ? 1 : 0
  if (json) {
    console.log(
      JSON.stringify({
        mode: whole ? "whole" : "part",
        tests,
        facts: Object.keys(FACTS).length,
        implemented,
        failing,
        refused: Object.fromEntries(refused.map((id) => [id, REFUSED[id]])),
        untested,
        failures
      })
    )
    return
  }
  console.log(`\ntests        ${tests.passed} passed, ${tests.failed} failed, ${tests.skipped} skipped`)
  console.log(`facts        ${Object.keys(FACTS).length}`)
  console.log(`implemented  ${implemented.length}`)
  console.log(`failing      ${failing.length}`)
  console.log(`refused      ${refused.length}`)
  console.log(`untested     ${untested.length}${whole ? "" : " (only some tests were run)"}`)
  if (failures.length > 0) console.log(`\nFailed tests:\n${failures.map((each) => `- ${each}`).join("\n")}`)
  if (failing.length > 0) console.log(`\nFailing facts:\n${failing.join(" ")}`)
  if (whole) {
    console.log(`\nRefused:\n${refused.map((id) => `- ${id} ${REFUSED[id] ?? ""}`).join("\n")}`)
    if (untested.length > 0) console.log(`\nUntested:\n${untested.join(" ")}`)
  }
}
