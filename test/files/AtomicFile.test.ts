/** Files that are written as a whole: their bytes, their permissions, and what a failure leaves. */
import {
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
import * as AtomicFile from "../../src/files/AtomicFile.ts"

let folder = ""
const at = (name: string) => join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-files-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

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
