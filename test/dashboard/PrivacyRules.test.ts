/** Privacy rules and excluded resources on the pages. */
import { assert } from "@effect/vitest"
import { Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { protect } from "../../src/catalogue/Protection.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import { routes as companyRoutes } from "../../src/dashboard/pages/Overview.ts"
import { routes as resourceRoutes } from "../../src/dashboard/pages/Resource.ts"
import { seed } from "../support/pages.ts"
import { suite } from "../support/suite.ts"
import { ask, unconnected, warehouse } from "./asking.ts"

suite("the privacy of a company's resources", warehouse, (test) => {
  test("is shown: the rules, since when they are applied, and what is not read", function* () {
    const hash = FieldRules.hash(Redacted.make("a key of the installation, 32 characters"))
    const { resource } = protect(serviceV2.resources.get("customers")!, [
      { pattern: "name", rule: hash },
      { pattern: "sales*man", rule: FieldRules.mask("***", 2) },
      { pattern: "nosuchfield", rule: FieldRules.exclude }
    ])
    const base = unconnected("north")
    const catalogue = {
      ...serviceV2,
      resources: new Map([...serviceV2.resources, ["customers", resource] as const])
    }
    const company = {
      ...base,
      connector: { ...base.connector, catalogue },
      excluded: [{ pattern: "employ*" }]
    }
    yield* seed([["north", 1]], ["customers", "orders"], 10)
    const shown = () => ask(resourceRoutes, [company], "/companies/north/customers")
    assert.include((yield* shown()).read, "They are not applied yet: tributary sync does it before it reads.")
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into tributary.privacy_rules (resource, statement, fields) values ('customers', ${resource.protection!.statement}, '[]')`
    const { read, text } = yield* shown()
    assert.match(read, /What is stored follows them; they were applied \d+ m?s ago ?\./)
    assert.match(
      read,
      /left out\s+none that the catalogue states\s+nosuchfield\s+hashed\s+name\s+name\s+masked\s+salesman\s+sales\*man/
    )
    assert.notInclude(text, hash.statement.split(" ")[1]!)
    assert.notInclude((yield* ask(resourceRoutes, [company], "/companies/north/orders")).read, "Privacy rules")
    assert.match(
      (yield* ask(companyRoutes, [company], "/companies/north")).read,
      /Not read\s+The warehouse keeps rows that were read before\.\s+.*employ\*\s+employees/s
    )
  })
})
