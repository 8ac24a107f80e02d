/** The recommended settings: with them, the connector reads every record of the installation. */
import { assert, describe } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as ServiceClient from "../../connectors/service-v2/client/ServiceClient.ts"
import * as Budget from "../../src/budget/Budget.ts"
import { settingsLines } from "../../src/cli/radar/Report.ts"
import type { Page } from "../../src/connector/Connector.ts"
import type { Json } from "../reference-server/support.ts"
import { change, clientOf, compare, installation } from "./support.ts"
import { loadText } from "../support/configuration.ts"
import { test } from "../support/suite.ts"

const dialects: ReadonlyArray<Json> = [
  { itemsKey: "results", paging: "page", limit: "ignored", pageDefault: 40, requestIdHeader: "X-Trace" },
  { itemsKey: "bare", paging: "page" },
  { itemsKey: "resource", paging: "offset", pageMax: 120, limit: "unknown", syncedThrough: false },
  { itemsKey: "bare" },
  { paging: "link", limit: "clamped", pageMax: 70 },
  { pageSizes: 5, keyOrder: 3, dateForm: "seconds", modifiedSince: "exclusive" }
]

describe("the recommended settings", () => {
  for (const dialect of dialects) {
    test(`are a valid configuration, with which every record is read: ${JSON.stringify(dialect)}`, function* () {
      const one = yield* installation("demo")
      change(one, "PUT", "/limits", { requestsPerMinute: null })
      change(one, "PUT", "/dialect", dialect)
      const { report } = yield* compare(one)
      assert.isNotEmpty(report.differences)
      const { installation: settings } = yield* loadText(settingsLines(report.settings).join("\n"), {
        SERVICE_API_URL: "http://127.0.0.1/x",
        SERVICE_API_TOKEN: "token"
      })
      const connector = yield* ServiceClient.make({
        baseUrl: one.baseUrl,
        token: Redacted.make(one.token()),
        catalogue: serviceV2,
        pageSize: settings.pageSize ?? "discover",
        paging: { mode: settings.pagingMode },
        itemsKey: settings.itemsKey,
        requestIdHeader: settings.requestIdHeader
      }).pipe(
        Effect.provideService(HttpClient.HttpClient, clientOf(one)),
        Effect.provideServiceEffect(Budget.Budget, Budget.makeOwn(null))
      )
      for (const path of ["shipmentlines", "invoices", "salesmen"]) {
        const resource = serviceV2.resources.get(path)!
        const ids: Array<string> = []
        for (let token: string | null = null; ;) {
          const page: Page = yield* connector.page({ resource, since: null, token })
          ids.push(...page.records.map(({ id }) => id))
          assert.deepStrictEqual(page.rejected, [])
          if (settings.requestIdHeader !== null) assert.match(page.source, /\[request req_/)
          token = page.next
          if (token === null) break
        }
        const { text } = one.control("GET", `/state?company=1&resource=${path}`)
        const all = text.split("\n").filter((line) => line !== "")
        assert.strictEqual(new Set(ids).size, all.length, path)
      }
    })
  }
})
