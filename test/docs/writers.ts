/** The folders of `src` whose statements write a table of the control plane, found in their sources. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../support/reference.ts"

const written =
  /(?:\binsert\s+into|\bupdate|\bdelete\s+from)\s+tributary\.(\w+)|\.(?:insertInto|updateTable|deleteFrom)\(\s*"tributary\.(\w+)/g

/** The tables that a text inserts into, updates or deletes from. */
export const tablesWrittenBy = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(written)].map(([, bySql, byKysely]) => bySql ?? byKysely!))

const folders = readdirSync(join(root, "src"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

/** The tables that each folder writes. */
export const tablesByFolder: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  folders.map((folder) => {
    const files = readdirSync(join(root, "src", folder), { encoding: "utf8", recursive: true })
    const texts = files
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(root, "src", folder, name), "utf8"))
    return [folder, tablesWrittenBy(texts.join("\n"))]
  })
)
