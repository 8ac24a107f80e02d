/**
 * The screenshots that README.md shows. `npm run screenshots` takes them again, of two days of history; the test checks
 * what the repository has.
 */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, inject, it } from "vitest"
import { openBrowser, visit } from "../support/browser.ts"
import { creditCustomer, openOperatorWithHistory } from "../support/history.ts"
import type { Operator } from "../support/operator.ts"
import { root } from "../support/reference.ts"

const folder = "config/screenshots"
const bytesMax = 170_000

interface Shot {
  readonly name: string
  readonly path: (operator: Operator) => Promise<string>
  /** Height of the picture; the page goes on below. */
  readonly height: number
  /** Pixels of the picture for one of the page. README.md is shown about 840 pixels wide. */
  readonly scale: number
}

const shots: ReadonlyArray<Shot> = [
  { name: "overview", path: () => Promise.resolve("/"), height: 1880, scale: 0.6 },
  {
    name: "record",
    path: async (operator) => `/records?company=north&resource=customers&id=${(await creditCustomer(operator)).id}`,
    height: 900,
    scale: 0.7
  },
  { name: "resource", path: () => Promise.resolve("/companies/north/invoices"), height: 900, scale: 0.7 }
]

describe("the screenshots of README.md", () => {
  it.runIf(process.env["SCREENSHOTS"] === folder)("show a desk, in light", async () => {
    const [{ operator, served }, browser] = await Promise.all([
      openOperatorWithHistory(inject("postgresUrl")),
      openBrowser()
    ])
    try {
      mkdirSync(join(root, folder), { recursive: true })
      for (const { name, path, height, scale } of shots) {
        const look = await visit(browser, await served.link(), {
          viewport: { width: 1280, height },
          deviceScaleFactor: scale,
          colorScheme: "light"
        })
        await look.go(await path(operator))
        await look.page.screenshot({ path: join(root, folder, `${name}.png`) })
        await look.close()
      }
    } finally {
      await browser.close()
      await operator.close()
    }
  })

  it(`are small, and the page names each with a text`, () => {
    const page = readFileSync(join(root, "README.md"), "utf8")
    assert.sameMembers(
      readdirSync(join(root, folder)),
      shots.map(({ name }) => `${name}.png`)
    )
    for (const { name } of shots) {
      const file = `${folder}/${name}.png`
      assert.isBelow(statSync(join(root, file)).size, bytesMax, file)
      assert.match(page, new RegExp(`!\\[[^\\]]{20,}\\]\\(${file}\\)`), file)
    }
  })
})
