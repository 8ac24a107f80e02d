/**
 * `npm run release`: checks that this commit can be published, packs it, and prints the commands that publish it. It
 * publishes nothing, and changes nothing outside the folder `release`.
 *
 * That folder then has the package, its bill of materials (CycloneDX), and the SHA-256 of both. The gate (`.ci/run`) runs
 * before it is packed. `--rehearse` leaves the gate out, and lists problems without ending for them.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { type Bill, billOf, type BundledPackage, problemsOf, type ReleaseState } from "./releaseRules.ts"

const { values } = parseArgs({ options: { rehearse: { type: "boolean", default: false } } })
const root = fileURLToPath(new URL("..", import.meta.url))
const folder = join(root, "release")

const textOf = (path: string) => readFileSync(join(root, path), "utf8")
const outputOf = (program: string, ...args: ReadonlyArray<string>) =>
  execFileSync(program, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", 2]
  })
/** Runs a command that shows its own output. Ends the release where it fails. */
const run = (program: string, ...args: ReadonlyArray<string>) => {
  const { status } = spawnSync(program, args, { cwd: root, stdio: "inherit" })
  if (status === 0) return
  report([`${[program, ...args].join(" ")} ended with ${status}`])
  process.exit(1)
}
const report = (problems: ReadonlyArray<string>) =>
  process.stderr.write(`This commit cannot be released:\n${problems.map((one) => `  ${one}\n`).join("")}`)

const manifest = JSON.parse(textOf("package.json")) as ReleaseState["manifest"]
const problems = problemsOf({
  manifest,
  locked: (JSON.parse(textOf("package-lock.json")) as { readonly version: string }).version,
  changelog: textOf("CHANGELOG.md"),
  dockerfile: textOf("Dockerfile"),
  changedFiles: outputOf("git", "status", "--porcelain").trim(),
  tags: outputOf("git", "tag", "--list").split("\n")
})
if (problems.length > 0) {
  report(problems)
  if (!values.rehearse) process.exit(1)
}
if (!values.rehearse) run(".ci/run")

const { name, version } = manifest
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
run("npm", "pack", "--loglevel=error", "--pack-destination", folder)
const bill = billOf(
  JSON.parse(outputOf("npm", "sbom", "--sbom-format", "cyclonedx")) as Bill,
  name,
  JSON.parse(textOf("dist/bundled.json")) as ReadonlyArray<BundledPackage>
)
const [packed, billFile] = [`${name}-${version}.tgz`, `${name}-${version}.cdx.json`]
writeFileSync(join(folder, billFile), `${JSON.stringify(bill, null, 2)}\n`)
const sums = [packed, billFile].map((file) => {
  const sum = createHash("sha256")
    .update(readFileSync(join(folder, file)))
    .digest("hex")
  return `${sum}  ${file}\n`
})
writeFileSync(join(folder, "SHA256SUMS"), sums.join(""))

process.stdout.write(`
release/ has ${packed}, ${billFile} (${bill.components.length} components) and SHA256SUMS.
${values.rehearse ? "This was a rehearsal: the gate did not run.\n" : ""}
Publish it with:

  git tag --sign v${version} --message "Version ${version}"
  git push origin v${version}
  npm publish release/${packed}   # provenance needs a CI job with an identity: npm refuses it elsewhere
`)
