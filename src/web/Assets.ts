/**
 * Static files of the pages: style sheets, scripts, icon.
 *
 * Promise: the files are part of the installation; nothing is loaded from other hosts. Their address changes with their
 * content, so that a browser may cache them forever.
 */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"

export interface Asset {
  readonly type: string
  readonly text: string
}

export interface Assets {
  /** Changes with the content of any file. */
  readonly version: string
  readonly path: (name: string) => string
  /** The file of this version of the program, whatever version is requested. */
  readonly read: (name: string) => Asset | undefined
}

const own = (name: string) => fileURLToPath(new URL(`assets/${name}`, import.meta.url))
const types = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" } as const

/** Reads the files. `folder` is the path at which they are served. */
export const load = (folder: string): Assets => {
  const { resolve } = createRequire(import.meta.url)
  const files: ReadonlyArray<readonly [name: string, type: string, file: string]> = [
    ["htmx.js", types.js, resolve("htmx.org/dist/htmx.min.js")],
    ["idiomorph.js", types.js, resolve("idiomorph/dist/idiomorph-ext.min.js")],
    ["live.js", types.js, own("live.js")],
    ["pages.css", types.css, own("pages.css")],
    ["icon.svg", types.svg, own("icon.svg")]
  ]
  const assets = new Map(files.map(([name, type, file]) => [name, { type, text: readFileSync(file, "utf8") }]))
  const version = [...assets.values()]
    .reduce((hash, { text }) => hash.update(text), createHash("sha256"))
    .digest("base64url")
    .slice(0, 12)
  return {
    version,
    path: (name) => `${folder}/${version}/${name}`,
    read: (name) => assets.get(name)
  }
}
