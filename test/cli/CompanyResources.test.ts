/** The resources that a company reads under lists of excluded ones. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../connectors/service-v2/client/Deliveries.ts"
import { chooseResources, unreadReason } from "../../src/cli/CompanyResources.ts"
import * as Invariants from "../../src/cli/Invariants.ts"
import { eventsOf } from "../../src/cli/ServedCompanies.ts"
import { Source } from "../../src/cli/Source.ts"
import { settingsOf } from "../../src/companies/StoredCompanies.ts"
import type { Invariant } from "../../src/invariants/Invariant.ts"
import { loadText } from "../support/configuration.ts"
import { test } from "../support/suite.ts"

const yaml = (company: string, more = "") =>
  `exclude_resources: [employees, "pr*"]\n${more}companies:\n  - { name: a, url: https://a.example, token: t${company} }\n`

const invariant = (name: string, resource: string): Invariant => ({
  name,
  statement: "",
  comment: "",
  severity: "warning",
  resources: [resource],
  sql: ""
})

/** The paths and the problems, with places that begin with `file`. */
const choose = Effect.fnUntraced(function* (text: string, named: ReadonlyArray<string> = []) {
  const settings = yield* loadText(text)
  const { problems, resources } = chooseResources(serviceV2, settings.companies[0]!, named)
  return {
    paths: resources.map(({ path }) => path),
    problems: problems.map((problem) =>
      problem.replace(/\(.*tributary\.yaml/, "(file").replace(/^.*tributary\.yaml/, "file")
    )
  }
})

describe("a list of excluded resources", () => {
  test("leaves them out, and those of the company's own list", function* () {
    const { paths, problems } = yield* choose(yaml(", exclude_resources: [orders]"))
    assert.deepStrictEqual(problems, [])
    const left = [...serviceV2.resources.keys()].filter((path) => !paths.includes(path))
    assert.includeMembers(left, ["employees", "prpaytypes", "orders"])
    assert.deepStrictEqual(left.filter((path) => !path.startsWith("pr")).sort(), ["employees", "orders"])
    const stored = settingsOf(
      {
        company: "b",
        installation: null,
        url: "https://b.example",
        companyId: null,
        warehouseNumber: null,
        resources: null,
        excludeResources: ["*lines"],
        events: null
      },
      yield* loadText(yaml(""))
    )
    assert.deepStrictEqual(
      stored._tag === "Success" ? stored.success.excluded.map(({ pattern }) => pattern) : stored.failure,
      ["employees", "pr*", "*lines"]
    )
  })

  test("is in conflict with a name of the company's list and of the command line", function* () {
    assert.deepStrictEqual((yield* choose(yaml(", resources: [orders, employees]"))).problems, [
      'company a: its list of resources names employees, and "employees" excludes it (file:1:21: exclude_resources.0); remove one of the two'
    ])
    assert.deepStrictEqual((yield* choose(yaml(", resources: [orders]"), ["prpaytypes"])).problems, [
      'company a: the command line names prpaytypes, and "pr*" excludes it (file:1:32: exclude_resources.1); remove one of the two'
    ])
  })

  test("has no entry that matches nothing, and leaves something", function* () {
    assert.deepStrictEqual((yield* choose(yaml(", exclude_resources: [ordres]"))).problems, [
      'file:3:70: companies.0.exclude_resources.0: no resource matches "ordres"; did you mean orders?'
    ])
    assert.match((yield* choose(yaml(', exclude_resources: ["*"]'))).problems.join(), /every resource is excluded/)
  })

  test("says why a resource is not read, where every company excludes it", function* () {
    const { companies } = yield* loadText(yaml(", exclude_resources: [orders]"))
    assert.match(
      unreadReason(companies, "orders")!,
      /^orders is not read, since exclude_resources has "orders" \(.*0\)$/
    )
    assert.isNull(unreadReason([...companies, { excluded: [] }], "orders"))
    assert.isNull(unreadReason([], "orders"))
  })

  test("subscribes to no event of them", function* () {
    const settings = yield* loadText(yaml(", webhook_events: all"))
    const events = eventsOf(settings.companies[0]!, settings, deliveryReader)
    const all = deliveryReader.eventsOf(null)
    assert.deepStrictEqual(
      all.filter((event) => !events.includes(event)),
      all.filter((event) => /^(employees|pr\w+)\./.test(event))
    )
    assert.include(events, "orders.updated")
  })

  test("leave out the invariants that read them; with a wrong rule, nothing is left", function* () {
    const source = {
      catalogue: serviceV2,
      invariants: Effect.succeed([invariant("a", "employees"), invariant("b", "orders")])
    }
    const read = Effect.fnUntraced(function* (text: string) {
      const settings = yield* loadText(text)
      return yield* Effect.provideService(Invariants.readable(settings), Source, source as unknown as Source["Service"])
    })
    const { kept, leftOut } = yield* read(yaml(""))
    assert.deepStrictEqual(
      kept.map(({ name }) => name),
      ["b"]
    )
    assert.match(leftOut[0]!.reason, /^employees is not read, since exclude_resources has "employees" /)
    const wrong = yield* Effect.flip(read(yaml("", "resources: { customers: { exclude: [id] } }\n")))
    assert.include(wrong.message, "id has no rule")
  })
})
