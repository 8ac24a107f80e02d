/**
 * The files that pages use beside their own HTML: style, scripts, icon.
 *
 * Promise: they are part of the installation, nothing comes from outside; their address changes with what they hold, so
 * that a browser may keep them for good.
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
  /** Changes with any of them. */
  readonly version: string
  readonly path: (name: string) => string
  readonly read: (version: string, name: string) => Asset | undefined
}

const own = (name: string) => fileURLToPath(new URL(`assets/${name}`, import.meta.url))
const types = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" } as const

/** Reads them. */
export const load = (): Assets => {
  const { resolve } = createRequire(import.meta.url)
  const files: ReadonlyArray<readonly [name: string, type: string, file: string]> = [
    ["htmx.js", types.js, resolve("htmx.org/dist/htmx.min.js")],
    ["idiomorph.js", types.js, resolve("idiomorph/dist/idiomorph-ext.min.js")],
    ["live.js", types.js, own("live.js")],
    ["pages.css", types.css, own("pages.css")],
    ["figures.css", types.css, own("figures.css")],
    ["icon.svg", types.svg, own("icon.svg")]
  ]
  const assets = new Map(files.map(([name, type, file]) => [name, { type, text: readFileSync(file, "utf8") }]))
  const version = [...assets.values()]
    .reduce((hash, { text }) => hash.update(text), createHash("sha256"))
    .digest("base64url")
    .slice(0, 12)
  return {
    version,
    path: (name) => `/assets/${version}/${name}`,
    // One of another version, asked for by a page from before, must not be kept under that address.
    read: (asked, name) => (asked === version ? assets.get(name) : undefined)
  }
}
