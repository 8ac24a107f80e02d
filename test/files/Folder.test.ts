/** Folders that the program makes. */
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Folder from "../../src/files/Folder.ts"

it("a new folder is made with those above it, or the error of the file system is thrown at once", () => {
  const base = mkdtempSync(join(tmpdir(), "tributary-folder-"))
  try {
    const deep = join(base, "a", "b", "c")
    assert.strictEqual(Folder.make(deep, 0o700), join(base, "a"))
    assert.strictEqual(statSync(deep).mode & 0o777, 0o700)
    assert.isUndefined(Folder.make(deep))
    writeFileSync(join(base, "file"), "")
    assert.throws(() => Folder.make(join(base, "file")), /EEXIST/)
    assert.throws(() => Folder.make(join(base, "file", "below")), /EEXIST|ENOTDIR/)
    // Node's own recursive mkdir never returns here.
    if (existsSync("/proc/self")) assert.throws(() => Folder.make("/proc/absent/below"), /ENOENT/)
  } finally {
    rmSync(base, { recursive: true })
  }
})
