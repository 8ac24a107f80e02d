/** Files that are written as a whole: their bytes, their permissions, and what a failure leaves. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import * as Close from "../../src/close/Files.ts"
import * as AtomicFile from "../../src/files/AtomicFile.ts"
import * as Mode from "../../src/files/Mode.ts"

let folder = ""
const at = (name: string) => join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-files-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (name: string): string => (statSync(at(name)).mode & 0o777).toString(8)

describe("the permissions of a file with records", () => {
  it.each([
    { mask: 0o022, file: "640", folder: "750" },
    { mask: 0o077, file: "600", folder: "700" },
    { mask: 0, file: "640", folder: "750" }
  ])("exclude other users with the mask $mask", ({ mask, file, folder }) => {
    const before = process.umask(mask)
    try {
      Mode.makeDataFolder(at("below/closes"))
      Close.writeClose(at("below/closes/2026-10-north.json"), "{}", Buffer.from("%PDF"), false)
      Close.writeClose(at("below/closes/2026-10-north.draft.json"), "{}", Buffer.from("%PDF"), true)
      AtomicFile.create(at("key"), "secret", { mode: Mode.secretFile })
      AtomicFile.replace(at("settings"), "a: 1", { mode: Mode.settingsFile })
    } finally {
      process.umask(before)
    }
    for (const name of readdirSync(at("below/closes"))) assert.strictEqual(modeOf(`below/closes/${name}`), file)
    assert.strictEqual(readdirSync(at("below/closes")).length, 4)
    assert.strictEqual(modeOf("below"), folder)
    assert.strictEqual(modeOf("below/closes"), folder)
    assert.strictEqual(modeOf("key"), "600")
    assert.strictEqual(modeOf("settings"), (0o644 & ~mask).toString(8))
  })

  it("are not widened where a file is replaced", () => {
    for (const [name, mode] of [
      ["private", 0o600],
      ["public", 0o666],
      ["group", 0o660]
    ] as const) {
      writeFileSync(at(name), "old")
      chmodSync(at(name), mode)
      AtomicFile.replace(at(name), "new")
    }
    assert.deepStrictEqual(["private", "public", "group"].map(modeOf), ["600", "640", "640"])
  })
})

describe("a file that is written as a whole", () => {
  it("is created once, and replaced with all bytes", () => {
    const large = Buffer.alloc(8_000_001, "x")
    assert.isTrue(AtomicFile.create(at("one"), "first", { mode: 0o600 }))
    assert.isFalse(AtomicFile.create(at("one"), "second"))
    assert.strictEqual(readFileSync(at("one"), "utf8"), "first")
    assert.strictEqual(statSync(at("one")).mode & 0o777, 0o600)
    AtomicFile.replace(at("one"), large)
    assert.isTrue(large.equals(readFileSync(at("one"))))
    AtomicFile.replace(at("two"), "new", { mode: 0o600, draft: at("draft") })
    assert.strictEqual(statSync(at("two")).mode & 0o777, 0o600)
    assert.deepStrictEqual(readdirSync(folder).sort(), ["one", "two"])
  })

  it("replaces the file of a symbolic link, and a draft that a crash left", () => {
    mkdirSync(at("real"))
    writeFileSync(at("real/one"), "old")
    symlinkSync(at("real/one"), at("link"))
    writeFileSync(at(`real/.one.${process.pid}.tmp`), "left", { mode: 0o644 })
    AtomicFile.replace(at("link"), "new", { mode: 0o600 })
    assert.strictEqual(readFileSync(at("real/one"), "utf8"), "new")
    assert.strictEqual(statSync(at("real/one")).mode & 0o777, 0o600)
    assert.deepStrictEqual(readdirSync(at("real")), ["one"])
  })

  it("leaves the former file and no draft when it cannot be replaced", () => {
    mkdirSync(at("folder"))
    writeFileSync(at("folder/kept"), "")
    assert.throws(() => AtomicFile.replace(at("folder"), "new"), /EISDIR|EEXIST|ENOTEMPTY|EPERM/)
    assert.throws(() => AtomicFile.replace(at("absent/one"), "new"), /ENOENT/)
    assert.throws(() => AtomicFile.create(at("folder/kept/one"), "new"), /ENOTDIR/)
    assert.deepStrictEqual(readdirSync(folder), ["folder"])
    assert.deepStrictEqual(readdirSync(at("folder")), ["kept"])
  })
})
