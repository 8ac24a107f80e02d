import { assert, describe, it } from "vitest"
import { documents } from "../../../connectors/service-v2/catalogue/documents.ts"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import {
  byAction,
  byParameter,
  fault,
  replayed
} from "../../../connectors/service-v2/reference-server/grounds/actions.ts"
import { byCode, byProblem, byType } from "../../../connectors/service-v2/reference-server/grounds/codes.ts"
import { groundsOf } from "../../../connectors/service-v2/reference-server/grounds/Grounds.ts"
import { places } from "../../../connectors/service-v2/reference-server/grounds/places.ts"
import type { Entry } from "../../../connectors/service-v2/reference-server/http/journal.ts"
import { Journal, notes, withoutSecrets } from "../../../connectors/service-v2/reference-server/http/journal.ts"
import { assertNone } from "../../support/assertions.ts"

const entry = (method: string, path: string, code: string | null, field: string | null = null): Entry => ({
  ...notes(),
  seq: 1,
  time: "2026-03-16T09:00:00.000000Z",
  method,
  path,
  status: 400,
  tokenid: 1,
  requestid: "req_1",
  fault: null,
  refusal: code === null ? null : { code, field, message: "", problems: [] }
})

describe("the grounds of an answer", () => {
  it("names only facts and decisions that exist, and error codes of the catalogue", () => {
    const factIds = new Set(documents().facts.map(({ id }) => id))
    const decisionIds = new Set(documents().decisions.map(({ id }) => id))
    const codes = new Set(serviceV2.errorCodes.map(({ code }) => code))
    const all = [
      ...[byCode, byProblem, byType, byAction, byParameter].flatMap((table) => Object.values(table)),
      ...places.map(({ ids }) => ids),
      fault,
      replayed
    ]
    const split = (half: 0 | 1) => all.flatMap((ids) => ids[half].split(" ")).filter((id) => id !== "")
    assertNone(split(0), (id) => !factIds.has(id))
    assertNone(split(1), (id) => !decisionIds.has(id))
    assertNone(
      places.flatMap(({ code }) => code.split(" ")),
      (code) => !codes.has(code)
    )
    assertNone([...codes], (code) => (byCode[code]?.[0] ?? "") === "", "codes without a fact")
  })

  it("names the fact that states the code", () => {
    const facts = new Map(documents().facts.map((fact) => [fact.id, fact.text]))
    const wrong = Object.entries(byCode).filter(
      ([code, [ids]]) => !(facts.get(ids.split(" ")[0]!) ?? "").includes(`\`${code}\``)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("has grounds for a success of every action of the catalogue's resources", () => {
    const wrong = [...serviceV2.resources.values()].flatMap(({ path, specials }) =>
      [
        entry("GET", `/${path}`, null),
        entry("POST", `/${path}`, null),
        entry("POST", `/${path}/batch`, null),
        entry("GET", `/${path}/1`, null),
        entry("PATCH", `/${path}/1`, null),
        entry("DELETE", `/${path}/1`, null),
        ...specials.map(({ method, name }) => entry(method, `/${path}/1/${name}`, null))
      ]
        .filter((one) => groundsOf(one).facts.length === 0)
        .map(({ method, path: wanted }) => `${method} ${wanted}`)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("distinguishes the places of one code", () => {
    const facts = (method: string, path: string, code: string, field: string | null = null) =>
      groundsOf(entry(method, path, code, field))
    assert.includeMembers([...facts("GET", "/orders?limit=0", "invalid_request", "limit").decisions], ["A-03"])
    assert.includeMembers([...facts("POST", "/payments", "invalid_type", "amount").facts], ["FIELD-05", "WRITE-10"])
    assert.includeMembers([...facts("POST", "/shipments", "invalid_type", "lines[7].quantity").facts], ["FIELD-07"])
    assert.includeMembers([...facts("PATCH", "/webhooks/3", "unknown_parameter", "x").facts], ["WEBHOOK-16"])
    assert.includeMembers([...facts("POST", "/webhooks/3/test", "rate_limited").facts], ["LOG-03"])
    assert.notInclude(facts("POST", "/webhooks/3/test", "rate_limited").facts, "LIM-02")
    assert.includeMembers([...facts("GET", "/orders", "rate_limited").facts], ["LIM-02"])
    assert.includeMembers([...facts("POST", "/taskstatuses", "duplicate", "name").facts], ["TASKSTATUSES-05"])
    assert.includeMembers([...facts("DELETE", "/stages/1", "not_found").decisions], ["I-14"])
    assert.deepStrictEqual(facts("GET", "/nothing", "not_found").decisions, ["C-13"])
  })
})

describe("the journal", () => {
  const exchange = (length: number) => ({
    asked: { headers: {}, body: null },
    answered: { headers: {}, body: "x".repeat(length) }
  })
  const { seq: _, ...added } = entry("GET", "/orders", null)

  it("finds entries by number, and keeps the bytes of the newest only", () => {
    const journal = new Journal()
    for (let index = 0; index < 10; index++) journal.add(added, exchange(1_000_000))
    assert.strictEqual(journal.find(3)?.seq, 3)
    assert.isUndefined(journal.find(11))
    assert.isUndefined(journal.exchange(5))
    assert.isDefined(journal.exchange(10))
    journal.add(added, exchange(5_000_000))
    assert.isUndefined(journal.exchange(11), "longer than all that may be kept")
    assert.isDefined(journal.exchange(10))
  })

  it("keeps the newest 100,000 entries under their numbers", () => {
    const journal = new Journal()
    for (let index = 0; index < 110_002; index++) journal.add(added, null)
    assert.isAtMost(journal.all().length, 110_000)
    assert.strictEqual(journal.find(110_002)?.seq, 110_002)
    assert.isUndefined(journal.find(1))
  })

  it("replaces secrets wherever they are", () => {
    const secret = "s3cr3t-value"
    for (const text of [
      `{"secret":"${secret}"}`,
      `{"secret" : "${secret}\\"x"`,
      `{"a":{"password":"${secret}"}}`,
      `{"api_key":"${secret}`,
      `/webhooks?secret=${secret}&x=1`,
      `svct_${secret.replaceAll("-", "")}`
    ]) {
      assert.notInclude(withoutSecrets(text).replaceAll("-", ""), secret.replaceAll("-", ""), text)
    }
    assert.strictEqual(withoutSecrets('{"name":"secretary"}'), '{"name":"secretary"}')
  })
})
