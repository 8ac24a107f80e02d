/** The screenshots that README.md and docs/how-to/monitor.md show. `npm run screenshots` takes them again; the test checks what the repository has. */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { application } from "../support/application.ts"
import { layerWarehouse } from "../support/postgres.ts"
import { root } from "../support/reference.ts"
import { fill } from "./shown.ts"
import { opened, visited } from "./shownInBrowser.ts"

const folder = "config/screenshots"
const bytesMax = 170_000

/** The height of the picture, and its pixels for one of the page: a page is shown about 840 pixels wide. */
const shots = [
  { name: "overview", path: "/", height: 1880, scale: 0.6 },
  { name: "record", path: "/records?company=north&resource=customers&id=1", height: 900, scale: 0.7 },
  { name: "resource", path: "/companies/north/customers", height: 900, scale: 0.7 }
]

describe("the screenshots of the documents", () => {
  layer(layerWarehouse, { timeout: "60 seconds" })("on a desk, in light", (it) => {
    it.effect.runIf(process.env["SCREENSHOTS"] === folder)("are taken", () =>
      Effect.gen(function* () {
        const companies = yield* fill("south", "the service failed (HTTP 500)")
        const [browser, pages] = [yield* opened, yield* application(companies)]
        mkdirSync(join(root, folder), { recursive: true })
        for (const { name, path, height, scale } of shots) {
          const { page, go } = yield* visited(browser, pages, {
            isStill: true,
            viewport: { width: 1280, height },
            deviceScaleFactor: scale,
            colorScheme: "light"
          })
          yield* Effect.promise(async () => {
            await go(path)
            await page.screenshot({ path: join(root, folder, `${name}.png`) })
          })
        }
      }).pipe(Effect.scoped)
    )

    it.effect("are small, and a page names each with a text", () =>
      Effect.sync(() => {
        const page = ["README.md", "docs/how-to/monitor.md"]
          .map((path) => readFileSync(join(root, path), "utf8"))
          .join()
        assert.sameMembers(
          readdirSync(join(root, folder)),
          shots.map(({ name }) => `${name}.png`)
        )
        for (const { name } of shots) {
          const file = `${folder}/${name}.png`
          assert.isBelow(statSync(join(root, file)).size, bytesMax, file)
          assert.match(page, new RegExp(`!\\[[^\\]]{20,}\\]\\((?:../../)?${file}\\)`), file)
        }
      })
    )
  })
})
