/**
 * Random requests from the document: valid ones, nearly valid ones, and bytes that are not a request.
 *
 * Ids, codes, ETags, cursors and keys of earlier responses are used again, so that the requests reach existing records.
 */
import type { Contract } from "../support/contract.ts"
import type { Chance } from "./Chance.ts"
import type { StoredRecords, Node } from "./instances.ts"
import { instance, mutated, odd } from "./instances.ts"

export interface Draft {
  readonly method: string
  /** Path and query, as they go on the wire. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
}

export interface Tokens {
  readonly full: string
  readonly other: string
  readonly weak: ReadonlyArray<string>
}

export const base = "/!/api/v2"

const kept = 400

/** Resources whose writes have rules of their own. They are requested more often than the others. */
const documents = new Set([
  "orders",
  "orderlines",
  "shipments",
  "invoices",
  "invoicelines",
  "payments",
  "orderdeposits",
  "purchaseorders",
  "purchaseorderlines",
  "purchaseorderreceipts",
  "apbills",
  "apbilllines",
  "serviceordertimes",
  "gltransactions",
  "inventorytransfers",
  "items",
  "customers"
])

/** A bounded collection. */
class Bag<A> {
  private readonly items: Array<A> = []
  add(chance: Chance, item: A): void {
    if (this.items.length < kept) this.items.push(item)
    else this.items[chance.below(kept)] = item
  }
  pick(chance: Chance): A | null {
    return this.items.length === 0 ? null : chance.pick(this.items)
  }
}

interface Endpoint {
  readonly template: string
  readonly method: string
  readonly operation: Node
}

const textOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))

export class Requests implements StoredRecords {
  private readonly chance: Chance
  private readonly contract: Contract
  private readonly tokens: Tokens
  private readonly endpoints: ReadonlyArray<Endpoint>
  private readonly records = new Map<string, Bag<Node>>()
  private readonly etags = new Map<string, string>()
  private readonly cursors = new Bag<{ readonly path: string; readonly cursor: string }>()
  private readonly keyed = new Bag<Draft>()
  private keys = 0

  constructor(chance: Chance, contract: Contract, tokens: Tokens) {
    this.chance = chance
    this.contract = contract
    this.tokens = tokens
    const paths = contract.document["paths"] as Readonly<Record<string, Readonly<Record<string, Node>>>>
    this.endpoints = Object.entries(paths).flatMap(([template, item]) =>
      Object.entries(item).flatMap(([method, operation]) => {
        const endpoint = { template, method: method.toUpperCase(), operation }
        const isDeep = documents.has(template.split("/")[1]!)
        return Array.from({ length: isDeep ? (method === "get" ? 2 : 5) : 1 }, () => endpoint)
      })
    )
  }

  idOf(resource: string): number | null {
    const record = this.records.get(resource)?.pick(this.chance)
    return typeof record?.["id"] === "number" ? record["id"] : null
  }

  codeOf(resource: string, by: string): string | null {
    const code = this.records.get(resource)?.pick(this.chance)?.[by]
    return typeof code === "string" ? code : null
  }

  /** Remembers the values of an answer. */
  remember(draft: Draft, status: number, headers: Readonly<Record<string, string | undefined>>, body: unknown): void {
    if (status >= 300 || typeof body !== "object" || body === null) return
    const path = draft.url.slice(base.length).split("?")[0]!
    const resource = path.split("/")[1] ?? ""
    const { data, _meta: meta, id, results, lines } = body as Record<string, unknown>
    const take = (record: unknown) => {
      if (typeof record !== "object" || record === null || !("id" in record)) return
      let bag = this.records.get(resource)
      if (bag === undefined) this.records.set(resource, (bag = new Bag<Node>()))
      bag.add(this.chance, record)
    }
    if (Array.isArray(data) && path === `/${resource}`)
      for (const record of data as ReadonlyArray<unknown>) take(record)
    if (Array.isArray(results)) for (const { record } of results as ReadonlyArray<Node>) take(record)
    // The answer to a special operation may be a record of another resource.
    if (typeof id === "number" && path.split("/").length <= 3) take(body)
    const parts = Array.isArray(lines)
      ? { orders: "orderlines", purchaseorders: "purchaseorderlines" }[resource]
      : undefined
    if (parts !== undefined) {
      let bag = this.records.get(parts)
      if (bag === undefined) this.records.set(parts, (bag = new Bag<Node>()))
      for (const line of lines as ReadonlyArray<Node>) if (typeof line["id"] === "number") bag.add(this.chance, line)
    }
    const etag = headers["ETag"] ?? headers["etag"]
    if (etag !== undefined && typeof id === "number") this.etags.set(`/${resource}/${id}`, etag)
    const cursor = (meta as Node | undefined)?.["next_cursor"]
    if (typeof cursor === "string") this.cursors.add(this.chance, { path, cursor })
  }

  draw(): Draft {
    const { chance } = this
    if (chance.is(0.02)) {
      const again = this.keyed.pick(chance)
      if (again !== null) return chance.is(0.6) ? again : { ...again, body: this.bodyBytes() }
    }
    const endpoint = chance.pick(this.endpoints)
    const method = chance.is(0.03)
      ? chance.pick(["PUT", "HEAD", "OPTIONS", "TRACE", "POST", "PATCH", "DELETE", "GET", "get", "PROPFIND"])
      : endpoint.method
    const path = this.path(endpoint.template)
    const url = `${chance.is(0.01) ? "/%21/api/v2" : base}${path}${this.query(endpoint, path)}`
    const body = method === "GET" && chance.is(0.98) ? null : this.body(endpoint.operation)
    const draft = { method, url, headers: this.headers(method, path), body }
    if (draft.headers["idempotency-key"] !== undefined) this.keyed.add(chance, draft)
    return draft
  }

  private path(template: string): string {
    const { chance } = this
    const owner = template.split("/")[1]!
    const id = chance.weighted<() => string>([
      [30, () => String(this.idOf(owner) ?? chance.between(1, 60))],
      [2, () => String(chance.between(1, 100_000))],
      [
        1,
        () => chance.pick(["0", "-1", "01", "1.0", "abc", "9007199254740993", "99999999999999999999", "%31", "1%20"])
      ],
      [1, () => chance.pick(["", "batch", "%F0%9F%91%8D", "%00", "%zz", "..", "1;a=b", "1%2F2", "null", "{id}"])]
    ])()
    const path = template.replace("{id}", id)
    if (chance.is(0.97)) return path
    return chance.pick<() => string>([
      () => `${path}/`,
      () => `/${path}`,
      () => path.toUpperCase(),
      () => `${path}/${chance.pick(["lines", "post", "batch", "pdf", "1"])}`,
      () => `/${"a".repeat(chance.between(1, 3000))}`,
      () => "",
      () => "/%E0%A4%A",
      () => path.replace(/e/g, "%65"),
      () => `${path}#fragment`
    ])()
  }

  private query({ operation, template }: Endpoint, path: string): string {
    const { chance } = this
    const parts: Array<string> = []
    const add = (name: string, value: string) => parts.push(`${name}=${value}`)
    if (chance.is(0.2)) {
      const cursor = this.cursors.pick(chance)
      if (cursor !== null && cursor.path === path)
        add("cursor", chance.is(0.7) ? cursor.cursor : this.tampered(cursor.cursor))
    }
    for (const listed of (operation["parameters"] ?? []) as ReadonlyArray<Node>) {
      const parameter = this.dereferenced(listed)
      if (parameter["in"] !== "query" || !chance.is(template.includes("{id}") ? 0.1 : 0.12)) continue
      const schema = parameter["schema"] as Node
      const name = String(parameter["name"])
      if (name === "cursor") continue
      const fits = instance(chance, this.contract.document, schema, this)
      const filter = this.records.get(template.split("/")[1]!)?.pick(chance)?.[name]
      const value = chance.weighted<() => unknown>([
        [5, () => fits],
        [3, () => (typeof filter === "object" || filter === undefined ? fits : filter)],
        [1, () => odd(chance)]
      ])()
      add(name, encoded(typeof value === "string" ? value : (JSON.stringify(value) ?? "")))
    }
    if (chance.is(0.03)) {
      add(chance.pick(["colour", "__proto__", "limit", "cancel", "", "constructor", "page", "offset", "Cancel"]), "1")
    }
    if (chance.is(0.01))
      parts.push(chance.pick(["%zz=1", "a=%e9", "=", "&&", "limit", "cancel=%00", "%00=1", "externalid=%ED%A0%80"]))
    if (chance.is(0.01) && parts.length > 0) parts.push(parts[0]!)
    return parts.length === 0 ? "" : `?${parts.join("&")}`
  }

  private tampered(cursor: string): string {
    const { chance } = this
    return chance.pick<() => string>([
      () => cursor.slice(0, chance.below(cursor.length)),
      () => `${cursor}A`,
      () => cursor.replace(/[A-M]/, "z"),
      () => Buffer.from(Buffer.from(cursor, "base64url").toString().replace(/\d+/, "7")).toString("base64url"),
      () => Buffer.from(JSON.stringify([1, null, -5, null, {}])).toString("base64url"),
      () => Buffer.from(JSON.stringify([1, null, 1, "x", { limit: "999999" }])).toString("base64url"),
      () => Buffer.from(JSON.stringify([1, 1, 1, "x", { modifiedsince: "never", colour: "1" }])).toString("base64url"),
      () => Buffer.from(JSON.stringify([2, 1e300, {}])).toString("base64url"),
      () => "W10",
      () => "%00"
    ])()
  }

  private dereferenced(node: Node): Node {
    const { $ref: reference } = node
    if (typeof reference !== "string") return node
    let target: unknown = this.contract.document
    for (const part of reference.slice(2).split("/")) target = (target as Node)[part]
    return target as Node
  }

  private headers(method: string, path: string): Readonly<Record<string, string>> {
    const { chance, tokens } = this
    const headers: Record<string, string> = {}
    const authorization = chance.weighted<() => string | null>([
      [90, () => `Bearer ${tokens.full}`],
      [4, () => `Bearer ${tokens.other}`],
      [4, () => `Bearer ${chance.pick(tokens.weak)}`],
      [
        1,
        () => chance.pick(["Bearer unknown", "bearer", "Basic YTpi", `Bearer ${tokens.full} x`, `Token ${tokens.full}`])
      ],
      [1, () => null]
    ])()
    if (authorization !== null) headers["authorization"] = authorization
    if (method !== "GET" && chance.is(0.12)) {
      headers["idempotency-key"] = chance.weighted([
        [9, `key-${++this.keys}`],
        [1, chance.pick(["", " ", "k".repeat(255), "k".repeat(256), "kéy", "tab\there"])]
      ])
    }
    if (method === "PATCH" && chance.is(0.3)) {
      const etag = this.etags.get(path) ?? '"v1"'
      headers["if-match"] = chance.pick([etag, etag, etag, `W/${etag}`, `"other", ${etag}`, "*", '"v0"', "", "v1", '"'])
    }
    if (chance.is(0.3)) {
      headers["content-type"] = chance.pick([
        "application/json",
        "application/json; charset=utf-8",
        "text/plain",
        "application/x-www-form-urlencoded"
      ])
    }
    return headers
  }

  private body(operation: Node): Uint8Array | null {
    const { chance } = this
    const content = (operation["requestBody"] as Node | undefined)?.["content"] as Node | undefined
    const schema = (content?.["application/json"] as Node | undefined)?.["schema"] as Node | undefined
    if (schema === undefined) return chance.is(0.9) ? null : this.bodyBytes()
    let value = instance(chance, this.contract.document, schema, this)
    if (schema["type"] === "array" && chance.is(0.02)) {
      value = Array.from(
        { length: chance.pick([249, 250, 251, 300]) },
        () => (value as ReadonlyArray<unknown>)[0] ?? {}
      )
    }
    for (
      let times = chance.weighted([
        [6, 0],
        [3, 1],
        [1, 3]
      ]);
      times > 0;
      times--
    )
      value = mutated(chance, value)
    const bytes = textOf(value) ?? null
    return chance.is(0.97) ? bytes : this.broken(bytes)
  }

  private bodyBytes(): Uint8Array {
    const { chance } = this
    return chance.is(0.5) ? this.broken(textOf({ externalid: "a" })) : textOf(odd(chance))
  }

  private broken(bytes: Uint8Array): Uint8Array {
    const { chance } = this
    return chance.pick<() => Uint8Array>([
      () => bytes.slice(0, chance.below(bytes.length)),
      () => Buffer.concat([bytes, Buffer.from("}")]),
      () => Buffer.concat([bytes, Buffer.from([0xff, 0xfe])]),
      () => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
      () => Buffer.from(Buffer.from(bytes).toString("utf8"), "utf16le"),
      () => Buffer.from("[".repeat(chance.pick([10, 5000, 100_000]))),
      () => {
        const depth = chance.pick([500, 3000, 20_000])
        return Buffer.from(`{"custom_fields":${"[".repeat(depth)}${"]".repeat(depth)}}`)
      },
      () => {
        const depth = chance.pick([500, 3000, 20_000])
        return Buffer.from(`${'{"lines":['.repeat(depth)}${"]}".repeat(depth)}`)
      },
      () => Buffer.from(`{"amount":1e${chance.pick([2, 308, 400, 99999])}}`),
      () => Buffer.from('{"externalid":"a","externalid":"b"}'),
      () => Buffer.from('{"__proto__":{"admin":true}}'),
      () => Buffer.from(`"${"a".repeat(chance.pick([10, 100_000]))}"`),
      () => Buffer.alloc(0)
    ])()
  }
}

/** Percent-encoding that does not fail on malformed text. */
const encoded = (text: string): string => {
  try {
    return encodeURIComponent(text)
  } catch {
    return "%EF%BF%BD"
  }
}
