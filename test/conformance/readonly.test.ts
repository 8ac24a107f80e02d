/**
 * A real installation, read only: lists, filters, the envelope, rejections and /me.
 *
 *   CONFORMANCE_BASE_URL=https://… CONFORMANCE_TOKEN=… npx node test/conformance/run.ts
 *
 * With a token and no control plane, these tests use that token and skip the resources that it may not read. Against
 * our own server they use a token and records of their own. They send only GET, and verbs that are rejected for any
 * body.
 */
import { assert, beforeAll, describe, it } from "vitest"
import {
  CODES,
  companyOf,
  errorFault,
  fresh,
  isRow,
  newCompany,
  row,
  rows,
  send,
  text,
  TIMESTAMP,
  useServer,
  type Answer,
  type Company,
  type Row
} from "./harness.ts"
import { dated, RESOURCES } from "./resources.ts"
import { makeSalesman, makeTerm } from "./world.ts"

useServer()

const token = process.env["CONFORMANCE_TOKEN"]
const real = token !== undefined && process.env["CONFORMANCE_CONTROL_URL"] === undefined

let c: Company
beforeAll(async () => {
  if (real) {
    c = companyOf(0, token)
    return
  }
  c = await newCompany()
  await makeSalesman(c, { email1: "a@b.example" })
  await makeSalesman(c)
  await makeTerm(c)
})

const get = (path: string): Promise<Answer> => send({ method: "GET", path, token: c.token, faulty: real })

/** Whether the token may not read it, or the install has no licence. Then the test is skipped. */
function closed(answer: Answer): boolean {
  const error = isRow(answer.json) ? answer.json["error"] : undefined
  return (
    answer.status === 403 &&
    isRow(error) &&
    ["insufficient_scope", "feature_not_licensed"].includes(String(error["code"]))
  )
}

function refusal(answer: Answer, code: string): Row {
  assert.strictEqual(answer.status, CODES[code], `${answer.request}: ${answer.text.slice(0, 300)}`)
  const error = row(row(answer.json)["error"])
  // A real installation may send legacy_code, which ours never does (D-09).
  const { legacy_code: _, ...documented } = error
  assert.isUndefined(errorFault(documented))
  assert.strictEqual(error["code"], code)
  return error
}

/** The records of a list, under any key (A-01 is an interpretation, not a fact). */
function records(answer: Answer, path: string): Row[] {
  assert.strictEqual(answer.status, 200, `${answer.request}: ${answer.text.slice(0, 300)}`)
  if (Array.isArray(answer.json)) return rows(answer.json)
  const body = row(answer.json)
  for (const key of ["data", "results", "items", "records", path]) if (Array.isArray(body[key])) return rows(body[key])
  assert.fail(`no records in ${Object.keys(body).join(", ")}`)
}

describe("access of a reader", () => {
  it("[AUTH-12][AUTH-18][ERR-01] without a token is 401 with WWW-Authenticate", async () => {
    const answer = await send({ method: "GET", path: "/me", faulty: true })
    refusal(answer, "unauthorized")
    assert.match(String(answer.headers["www-authenticate"]), /^Bearer .*error="?invalid_token"?/)
  })

  it("[AUTH-12][AUTH-18] with an unknown token is 401", async () => {
    refusal(await send({ method: "GET", path: "/me", token: fresh("unknown"), faulty: true }), "unauthorized")
  })

  it("[SPECIAL-10][RES-04] includes /me with the scopes of the token", async () => {
    const answer = await get("/me")
    assert.strictEqual(answer.status, 200)
    const body = row(answer.json)
    const inner = isRow(body["token"]) ? body["token"] : body
    const scopes = inner["scopes"] ?? body["scopes"]
    assert.isTrue(Array.isArray(scopes))
    for (const scope of scopes as unknown[]) assert.match(text(scope), /^[a-z0-9]+:(read|write|cancel)$/)
  })

  it("[CODE-09][C-13] to an unknown path is 404 in the envelope", async () => {
    refusal(await get(`/${fresh("nosuchthing")}`), "not_found")
  })
})

for (const each of RESOURCES) {
  const { path, ops, filters, modifiedsince, cancel } = each
  describe(`${path} for a reader`, () => {
    it("[EP-05][EP-15][EP-19][FIELD-01][FIELD-05][FIELD-08][FIELD-09][FIELD-11][FIELD-13][FIELD-14] lists records that are not cancelled, with fields of their documented types", async (context) => {
      const answer = await get(`/${path}`)
      if (closed(answer)) return context.skip()
      for (const record of records(answer, path)) {
        assert.isTrue(Number.isInteger(record["id"]))
        if (cancel) assert.notStrictEqual(record["cancel"], true)
        if (dated(each)) assert.match(text(record["lastchangedate"]), TIMESTAMP)
        for (const { name, kind } of each.fields) {
          const value = record[name]
          if (value === null || value === undefined) continue
          if (kind === "int") assert.isTrue(Number.isInteger(value), `${name} ${JSON.stringify(value)}`)
          else if (kind === "bool") assert.isBoolean(value, name)
          else assert.isString(value, name)
          if (typeof kind === "object") assert.match(text(value), /^-?\d+(\.\d+)?$/, name)
        }
      }
      assert.strictEqual((await get(`/${path}?cancel=any`)).status, 200)
    })

    it("[EP-18][CODE-05] rejects an unknown filter, and names the valid ones", async (context) => {
      const answer = await get(`/${path}?nosuchfilter=1`)
      if (closed(answer)) return context.skip()
      const error = refusal(answer, "unknown_parameter")
      for (const { name } of filters) assert.include(String(error["message"]), name)
    })

    it("[EP-13] accepts no include but custom_fields", async (context) => {
      const answer = await get(`/${path}?include=lines`)
      if (closed(answer)) return context.skip()
      assert.include([400, 422], answer.status)
      assert.strictEqual((await get(`/${path}?include=custom_fields`)).status, 200)
    })

    it("[EP-16][EP-21] offers modifiedsince where it is documented", async (context) => {
      const answer = await get(`/${path}?modifiedsince=2100-01-01T00:00:00Z`)
      if (closed(answer)) return context.skip()
      if (!modifiedsince) {
        refusal(answer, "unknown_parameter")
        return
      }
      assert.strictEqual(answer.status, 200)
      const meta = row(row(answer.json)["_meta"])
      assert.match(text(meta["synced_through"]), TIMESTAMP)
    })

    it("[EP-17][FIELD-12] filters by externalid exactly", async (context) => {
      const answer = await get(`/${path}?externalid=${fresh("unknown")}`)
      if (closed(answer)) return context.skip()
      assert.isEmpty(records(answer, path))
    })

    if (ops.includes("R")) {
      it("[EP-08][CODE-09] returns a listed record, and 404 for an absent one", async (context) => {
        const list = await get(`/${path}`)
        if (closed(list)) return context.skip()
        refusal(await get(`/${path}/999999999`), "not_found")
        const [listed] = records(list, path)
        if (listed === undefined) return
        const answer = await get(`/${path}/${String(listed["id"])}`)
        assert.strictEqual(answer.status, 200)
        const body = row(answer.json)
        assert.strictEqual((isRow(body["data"]) ? body["data"] : body)["id"], listed["id"])
      })
    }

    it("[CODE-10][EP-04] answers 405 with Allow to a verb that no collection has", async () => {
      const answer = await send({ method: "PUT", path: `/${path}`, token: c.token, raw: "{}", faulty: real })
      refusal(answer, "method_not_allowed")
      assert.match(String(answer.headers.allow), /GET/)
    })
  })
}
