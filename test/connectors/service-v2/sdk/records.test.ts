/** The records of all resources, as the client reads them, beside the JSON that the service sends. */
import { assert, beforeAll, describe, it } from "vitest"
import { serviceV2 } from "../../../../connectors/service-v2/catalogue/index.ts"
import type { ResourceClient, ResourceName, ServiceClient } from "../../../../connectors/service-v2/sdk/index.ts"
import type { OrdersShape } from "../../../../connectors/service-v2/sdk/index.ts"
import { useReference } from "./support.ts"

const sdk = useReference()
let token: string

/** Numbers as text where a float has other digits. */
const exactly = (text: string) =>
  JSON.parse(text, ((_name: string, value: unknown, { source }: { readonly source?: string }) =>
    typeof value === "number" && String(value) !== source ? source : value) as (
    name: string,
    value: unknown
  ) => unknown)

/** All records of a list, by requests of this test. */
const sentRecords = async (path: string, query: string) => {
  const records: Array<unknown> = []
  for (let cursor: string | null = ""; cursor !== null;) {
    const url = `${sdk.baseUrl()}/${path}?limit=250${query}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    const page = exactly(await response.text()) as { data: Array<unknown>; _meta: { next_cursor: string | null } }
    records.push(...page.data)
    cursor = page._meta.next_cursor
  }
  return records
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as ReadonlyArray<unknown>

const listOf = (client: ServiceClient, path: string) =>
  (client.resource(path as ResourceName) as unknown as ResourceClient<OrdersShape>).list({ cancel: "any" })

describe("the records of every resource", () => {
  beforeAll(async () => {
    await sdk.control("POST", "/reset", { data: "demo" })
    token = await sdk.token()
  })

  it("have the members and values that were sent", async () => {
    const client = await sdk.client({ token, requestsPerMinute: null })
    await sdk.control("PUT", "/limits", { requestsPerMinute: 1_000_000 })
    let count = 0
    let values = 0
    for (const path of serviceV2.resources.keys()) {
      const records = plain(await listOf(client, path).toArray())
      assert.deepStrictEqual(records, await sentRecords(path, "&cancel=any"), path)
      count += records.length
      values += records.flatMap((record) => Object.keys(record as object)).length
    }
    assert.isAbove(count, 500)
    assert.isAbove(values, 5_000)
  })
})
