/** The OpenAPI 3.1 description: available without a token, and equal to the server's behaviour. */
import { assert, beforeAll, describe, it } from "vitest"
import {
  fresh,
  idOf,
  isRow,
  keptPromises,
  newCompany,
  row,
  rows,
  send,
  succeeded,
  text,
  useServer,
  type Answer,
  type Company,
  type Row
} from "./harness.ts"
import { OBJECTS } from "./objects.ts"
import { RESOURCES } from "./resources.ts"
import { faults, resolve } from "./schema.ts"
import { makeCustomer, makeDraft, makeItem, makeOrder, makePayment, makePosted, makeShipment } from "./world.ts"

useServer()

const VERBS = ["get", "post", "patch", "delete"]

async function document(): Promise<Row> {
  return succeeded(await send({ method: "GET", path: "/openapi.json" }))
}

/** The item of a path, with any parameter names, and with the base in the servers or in the path. */
function item(paths: Row, template: string): Row {
  const shape = (path: string) => path.replaceAll(/\{[^}]*\}/g, "{}")
  const match = Object.keys(paths).find(
    (path) =>
      shape(path).endsWith(shape(template)) && shape(path).split("/").length <= shape(template).split("/").length + 3
  )
  if (match === undefined) throw new Error(`no path ${template}`)
  return row(paths[match])
}

it("[VER-01][GEN-01][GEN-08] the description is valid JSON with openapi 3.1, info and paths, without a token", async () => {
  const doc = await document()
  assert.match(text(doc["openapi"]), /^3\.1\.\d+$/)
  const info = row(doc["info"])
  assert.isNotEmpty(text(info["title"]))
  assert.isNotEmpty(text(info["version"]))
  assert.isNotEmpty(Object.keys(row(doc["paths"])))
})

it("[EP-19][EP-05][EP-23] the description has the operations of every detailed resource, and no others", async () => {
  const paths = row((await document())["paths"])
  for (const { path, ops } of RESOURCES) {
    const collection = item(paths, `/${path}`)
    assert.property(collection, "get", path)
    assert.property(collection, "post", path)
    assert.property(item(paths, `/${path}/batch`), "post", path)
    const one: readonly string[] = ops
    const expected = [
      ...(one.includes("R") ? ["get"] : []),
      ...(one.includes("U") ? ["patch"] : []),
      ...(one.includes("D") ? ["delete"] : [])
    ]
    if (expected.length === 0) continue
    const shown = Object.keys(item(paths, `/${path}/{id}`)).filter((verb) => VERBS.includes(verb))
    assert.sameMembers(shown, expected, path)
  }
})

it("[SPECIAL-01][SPECIAL-03][SPECIAL-04][SPECIAL-06][SPECIAL-07][WEBHOOK-17][WEBHOOK-18] the description has the special endpoints and the webhooks", async () => {
  const paths = row((await document())["paths"])
  for (const [path, verb] of [
    ["/shipments/{id}/packages", "get"],
    ["/shipments/{id}/pdf", "get"],
    ["/shipments/{id}/boxlabels", "get"],
    ["/orders/{id}/invoice", "post"],
    ["/invoicelines/{id}/tax", "get"],
    ["/payments/{id}/receipt", "get"],
    ["/invoices/{id}/post", "post"],
    ["/customers/{id}/balance", "get"],
    ["/items/{id}/stock", "get"],
    ["/me", "get"],
    ["/webhooks", "post"],
    ["/webhooks/{id}", "patch"],
    ["/webhooks/{id}/test", "post"],
    ["/webhooks/{id}/deliveries", "get"]
  ] as const) {
    assert.property(item(paths, path), verb, path)
  }
})

it("[GEN-01] the description has no unresolved reference", async () => {
  const doc = await document()
  const dangling: string[] = []
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value as unknown[]) walk(each)
    else if (isRow(value)) {
      const ref = value["$ref"]
      if (typeof ref === "string" && ref.startsWith("#/")) {
        const target = ref
          .slice(2)
          .split("/")
          .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
          .reduce<unknown>((at, part) => (isRow(at) ? at[part] : undefined), doc)
        if (target === undefined) dangling.push(ref)
      }
      for (const each of Object.values(value)) walk(each)
    }
  }
  walk(doc)
  assert.deepEqual(dangling, [])
})

it("[EP-18][CODE-05] the description has the filters of a list as its query parameters", async () => {
  const doc = await document()
  const paths = row(doc["paths"])
  for (const { path, filters, modifiedsince } of RESOURCES) {
    const operation = row(item(paths, `/${path}`)["get"])
    const parameters = rows(operation["parameters"] ?? []).map((each) => {
      const ref = each["$ref"]
      if (typeof ref !== "string") return each
      const parts = ref.slice(2).split("/")
      return row(parts.reduce<unknown>((at, part) => (isRow(at) ? at[part] : undefined), doc))
    })
    const names = parameters.filter((each) => each["in"] === "query").map((each) => text(each["name"]))
    for (const name of [...filters, "cancel", "externalid", "include", "limit", "cursor"])
      assert.include(names, name, path)
    assert.strictEqual(names.includes("modifiedsince"), modifiedsince, path)
  }
  assert.lengthOf(OBJECTS, 17)
})

it("[AUTH-01] the description states bearer tokens", async () => {
  const schemes = row(row((await document())["components"])["securitySchemes"])
  const bearer = Object.values(schemes).map((each) => row(each))
  assert.isTrue(bearer.some((each) => each["type"] === "http" && String(each["scheme"]).toLowerCase() === "bearer"))
})

it("[AUTH-12] the description is the same with a valid or invalid token", async () => {
  const c = await newCompany()
  const plain = (await send({ method: "GET", path: "/openapi.json" })).text
  assert.strictEqual((await c.get("/openapi.json")).text, plain)
  assert.strictEqual((await send({ method: "GET", path: "/openapi.json", token: "any-token" })).status, 200)
})

describe("the description as a validator", () => {
  let doc: Row
  let paths: Row
  beforeAll(async () => {
    doc = await document()
    paths = row(doc["paths"])
  })

  function operation(path: string, verb: string): Row {
    return row(item(paths, path)[verb], `${verb} ${path}`)
  }

  function schemaOf(described: unknown, what: string): unknown {
    const content = row(row(resolve(doc, described), what)["content"], `${what}.content`)
    const json = content["application/json"] ?? Object.values(content)[0]
    return row(json, what)["schema"]
  }

  /** Asserts that the answer fits the description of its status. */
  function holds(path: string, verb: string, answer: Answer): void {
    const responses = row(operation(path, verb)["responses"])
    const status = String(answer.status)
    const described = responses[status] ?? responses[`${status.slice(0, 1)}XX`] ?? responses["default"]
    assert.isDefined(described, `${verb} ${path} describes no ${status}, only ${Object.keys(responses).join(", ")}`)
    const wrong = faults(doc, schemaOf(described, `${verb} ${path} ${status}`), answer.json)
    assert.deepEqual(wrong.slice(0, 5), [], `${answer.request} -> ${status}`)
  }

  function bodyFaults(path: string, verb: string, body: unknown): string[] {
    return faults(doc, schemaOf(operation(path, verb)["requestBody"], `${verb} ${path} body`), body)
  }

  for (const { path, ops, make, body, change, filters } of RESOURCES) {
    it(`[GEN-01][EP-05][EP-06][EP-07][EP-18] accepts the valid bodies and all responses of ${path}`, async () => {
      const c = await newCompany()
      const payload = { ...(await body(c)), externalid: fresh("o") }
      assert.deepEqual(bodyFaults(`/${path}`, "post", payload), [], "a good body")
      assert.isNotEmpty(bodyFaults(`/${path}`, "post", { ...payload, externalid: 5 }), "externalid is no number")
      assert.isNotEmpty(bodyFaults(`/${path}`, "post", { ...payload, externalid: "x".repeat(101) }), "too long")
      const collection = `/${path}`
      holds(collection, "post", await c.post(collection, payload))
      holds(collection, "post", await c.post(collection, { bogus: 1 }))
      holds(collection, "post", await c.post(collection, { ...payload, externalid: 5 }))
      holds(`${collection}/batch`, "post", await c.post(`${collection}/batch`, [await body(c), { bogus: 1 }]))
      await make(c)
      holds(collection, "get", await c.get(collection))
      holds(collection, "get", await c.get(`${collection}?include=custom_fields`))
      holds(collection, "get", await c.get(`${collection}?bogus=${filters.length}`))
      holds(collection, "get", await (await c.with("users:read")).get(collection))
      holds(collection, "get", await send({ method: "GET", path: collection }))
      const id = idOf(await make(c))
      const one = `${collection}/{id}`
      if (ops.includes("R")) {
        holds(one, "get", await c.get(`${collection}/${id}`))
        holds(one, "get", await c.get(`${collection}/999999999`))
      }
      if (ops.includes("U")) {
        assert.deepEqual(bodyFaults(one, "patch", change), [])
        holds(one, "patch", await c.patch(`${collection}/${id}`, change))
        holds(one, "patch", await c.patch(`${collection}/${id}`, { externalid: "x" }, { "if-match": '"stale"' }))
      }
      if (ops.includes("D")) holds(one, "delete", await c.del(`${collection}/${id}`))
    })
  }

  it("[SPECIAL-01][SPECIAL-03][SPECIAL-07][SPECIAL-10][SPECIAL-11][WEBHOOK-13][WEBHOOK-18] accepts the responses of the special endpoints and the webhooks", async () => {
    const c: Company = await newCompany()
    const order = await makeOrder(c)
    const shipment = idOf(await makeShipment(c, order, "2"))
    holds("/shipments/{id}/packages", "get", await c.get(`/shipments/${shipment}/packages`))
    holds("/orders/{id}/invoice", "post", await c.post(`/orders/${order.id}/invoice`, {}))
    holds("/orders/{id}/invoice", "post", await c.post(`/orders/${order.id}/invoice`, {}))
    const payment = idOf(await makePayment(c, { invoiceid: idOf(await makePosted(c)) }))
    holds("/payments/{id}/receipt", "get", await c.get(`/payments/${payment}/receipt`))
    holds("/invoices/{id}/post", "post", await c.post(`/invoices/${idOf(await makeDraft(c))}/post`, {}))
    const customer = idOf(await makeCustomer(c))
    holds("/customers/{id}/balance", "get", await c.get(`/customers/${customer}/balance`))
    holds("/items/{id}/stock", "get", await c.get(`/items/${idOf(await makeItem(c))}/stock`))
    holds("/me", "get", await c.get("/me"))
    const hook = await c.post("/webhooks", { url: "https://receiver.example/x", events: ["orders.created"] })
    holds("/webhooks", "post", hook)
    holds("/webhooks", "post", await c.post("/webhooks", { url: "http://x.example", events: ["orders.created"] }))
    holds("/webhooks", "get", await c.get("/webhooks"))
    const url = `/webhooks/${idOf(row(hook.json))}`
    holds("/webhooks/{id}", "get", await c.get(url))
    holds("/webhooks/{id}", "patch", await c.patch(url, { paused: true }))
    holds("/webhooks/{id}", "patch", await c.patch(url, {}))
    holds("/webhooks/{id}/deliveries", "get", await c.get(`${url}/deliveries`))
  })
})

keptPromises()
