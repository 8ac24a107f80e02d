/** The OpenAPI 3.1 description: available without a token, and equal to the server's behaviour. */
import { assert, it } from "vitest"
import { isRow, keptPromises, newCompany, row, rows, send, succeeded, text, useServer, type Row } from "./harness.ts"
import { RESOURCES } from "./resources.ts"

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
    for (const name of [...filters.map((filter) => filter.name), "cancel", "externalid", "include", "limit", "cursor"])
      assert.include(names, name, path)
    assert.strictEqual(names.includes("modifiedsince"), modifiedsince, path)
  }
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

keptPromises()
