/** Files that the program reads: only a file that does not exist is absent. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import * as ReadFile from "../../src/files/ReadFile.ts"

let folder = ""
const at = (name: string) => join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-files-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const messageOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    assert.instanceOf(error, ReadFile.FileProblem)
    return error.message
  }
  return assert.fail("nothing was thrown")
}

describe("a file that the program reads", () => {
  it("is absent only where nothing has its name", () => {
    writeFileSync(at("text"), "\u{feff}a: ä\n")
    mkdirSync(at("folder"))
    symlinkSync("text", at("link"))
    symlinkSync("nowhere", at("broken"))
    symlinkSync("loop", at("loop"))
    assert.strictEqual(ReadFile.text(at("text")), "a: ä\n")
    assert.strictEqual(ReadFile.textIfPresent(at("link")), "a: ä\n")
    assert.isNull(ReadFile.textIfPresent(at("absent")))
    assert.isNull(ReadFile.textIfPresent(at("absent/below")))
    assert.isTrue(ReadFile.exists(at("folder")))
    assert.isFalse(ReadFile.exists(at("absent")))
    assert.match(
      messageOf(() => ReadFile.text(at("absent"))),
      /does not exist$/
    )
    for (const read of [ReadFile.textIfPresent, ReadFile.bytesIfPresent, ReadFile.exists]) {
      for (const [name, problem] of [
        ["broken", /is a symbolic link to nowhere, which does not exist/],
        ["loop", /links lead to each other/],
        ["text/below", /a part of the path is a file/],
        ["x".repeat(300), /the name is too long/]
      ] as const) {
        assert.match(
          messageOf(() => read(at(name))),
          problem
        )
      }
    }
  })

  it("is text in UTF-8 of a bounded size", () => {
    mkdirSync(at("folder"))
    writeFileSync(at("utf16"), Buffer.from("\u{feff}A=1", "utf16le"))
    for (const [path, problem] of [
      [at("folder"), /is a folder, and a file is needed/],
      [at("utf16"), /is not text in UTF-8/],
      ["/dev/zero", /is larger than 16 MB/]
    ] as const) {
      assert.match(
        messageOf(() => ReadFile.textIfPresent(path)),
        problem
      )
    }
    assert.strictEqual(ReadFile.textIfPresent("/dev/null"), "")
  })
})
