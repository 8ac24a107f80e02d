/** The units of config/systemd, read by systemd itself where it is installed. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { root } from "../support/reference.ts"
import { textOf } from "./Program.ts"

const units = readdirSync(join(root, "config/systemd"))

/** What systemd objects to in the units after a change of their text. The program is one that exists. */
const objections = (change: (text: string) => string): string => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-systemd-"))
  try {
    for (const unit of units) {
      const text = textOf(join("config/systemd", unit)).replace("/usr/local/bin/tributary", process.execPath)
      writeFileSync(join(folder, unit), change(text))
    }
    const verify = ["verify", "--man=no", ...units.map((unit) => join(folder, unit))]
    const { status, stderr } = spawnSync("systemd-analyze", verify, { encoding: "utf8" })
    return status === 0 ? stderr : `${stderr} (code ${status})`
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0

it.skipIf(!hasSystemd)("the units have only directives that systemd knows", () => {
  assert.strictEqual(units.length, 3)
  assert.strictEqual(
    objections((text) => text),
    ""
  )
  assert.include(
    objections((text) => text.replace("ProtectSystem=", "ProtectSystm=")),
    "Unknown key 'ProtectSystm'"
  )
})
