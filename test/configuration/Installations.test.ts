/** Installations of the file: what they have otherwise, and what the top level gives them. */
import { assert, describe } from "@effect/vitest"
import { Duration } from "effect"
import { exclusionOf } from "../../src/configuration/Companies.ts"
import { writtenAt } from "../../src/configuration/Installations.ts"
import { loadText, problemsOf } from "../support/configuration.ts"
import { test } from "../support/suite.ts"

const tokens = { A: "token-of-a", B: "token-of-b", C: "token-of-c" }

const two = `
paging: { mode: page }
requests: { timeout_seconds: 30 }
budget: { requests_per_minute: 300 }
sync: { custom_fields: true, concurrency: 2 }
installations:
  - name: hosted
    url: https://hosted.example/!/api/v2
    paging: { page_size: 100 }
    budget: { scope: install }
    sync: { overlap_seconds: 60 }
    resources: { widgets: { modifiedsince: true } }
  - { name: site, url: http://site.example/!/api/v2, paging: { mode: cursor }, allow_http: true }
companies:
  - { name: a, installation: hosted, token_env: A }
  - { name: b, installation: site, token_env: B }
  - { name: c, url: https://c.example/!/api/v2, token_env: C }
`

describe("installations", () => {
  test("have what they write, and the rest from the top level", function* () {
    const { companies, installation, installations } = yield* loadText(two, tokens)
    const [hosted, site] = installations
    assert.deepStrictEqual([hosted!.name, site!.name, installation.name], ["hosted", "site", null])
    assert.deepInclude(hosted, { pagingMode: "page", pageSize: 100, requestsPerMinute: 300, budgetScope: "install" })
    assert.deepInclude(site, { pagingMode: "cursor", pageSize: null, budgetScope: "token", allowHttp: true })
    assert.isFalse(hosted!.allowHttp)
    for (const one of [hosted!, site!, installation]) {
      assert.isTrue(Duration.equals(one.requestTimeout, Duration.seconds(30)))
      assert.isTrue(one.customFields)
    }
    assert.isTrue(Duration.equals(hosted!.engine.overlap, Duration.minutes(1)))
    assert.isTrue(Duration.equals(site!.engine.overlap, installation.engine.overlap))
    assert.deepStrictEqual(
      companies.map((one) => [one.name, one.installation.name, one.url]),
      [
        ["a", "hosted", "https://hosted.example/!/api/v2"],
        ["b", "site", "http://site.example/!/api/v2"],
        ["c", null, "https://c.example/!/api/v2"]
      ]
    )
    assert.deepStrictEqual([writtenAt(hosted!, "paging.mode"), writtenAt(site!, "paging.mode")], ["page", "cursor"])
    assert.isUndefined(writtenAt(site!, "list.items_key"))
  })

  test("keep a resource of their own from the companies of others", function* () {
    const { companies, resources } = yield* loadText(two, tokens)
    assert.deepStrictEqual(
      resources.map(({ path }) => path),
      ["widgets"]
    )
    assert.deepStrictEqual(
      companies.map((one) => exclusionOf(one, "widgets")?.place.replace(/^.*installations/, "installations")),
      [undefined, "installations.0.resources.widgets", "installations.0.resources.widgets"]
    )
  })

  test("are refused with the place of the mistake", function* () {
    const own = (text: string) => problemsOf(`installations: [{ name: a, ${text} }]`)
    assert.match((yield* own("paging: { mode: pages }"))[0]!, /^file:1:\d+: installations\.0\.paging\.mode: expected/)
    assert.match(
      (yield* own("paging: { size: 3 }"))[0]!,
      /installations\.0\.paging\.size: there is no such setting; allowed: mode, page_size/
    )
    assert.match((yield* own("sync: { concurrency: 3 }"))[0]!, /installations\.0\.sync\.concurrency: there is no such/)
    assert.match((yield* own("requests: { timeout_seconds: 0 }"))[0]!, /timeout_seconds/)
    assert.match((yield* own("resources: { 'w*': {} }"))[0]!, /expected the path of one resource/)
    const same = "name: a, resources: { widgets: {} } }, { name: b, resources: { widgets: { cancel: true } } }"
    assert.match((yield* problemsOf(`installations: [{ ${same}]`))[0]!, /a has another resource of this path/)
    assert.deepStrictEqual(yield* problemsOf("installations: [{ name: a }, { name: a }]"), [
      "two installations are called a"
    ])
    const unknown = "{ installations: [{ name: hosted }], companies: [{ name: n, installation: hostet, token: x }] }"
    assert.match(
      (yield* problemsOf(unknown))[0]!,
      /companies\.0\.installation: there is no installation "hostet"; did you mean "?hosted/
    )
  })
})
