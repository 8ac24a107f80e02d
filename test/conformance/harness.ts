/**
 * The harness of the wire tests: it starts a reference server for each file, sends HTTP requests, and has the assertions
 * that every test shares. It is written from the documents alone and uses nothing of the product but its address and its
 * answers, so that it cannot repeat a mistake of the product.
 */
import http from "node:http"
import { afterAll, assert, beforeAll, it as test } from "vitest"
import { ERROR_CODES } from "./facts.ts"

// --- JSON values, checked by type ---------------------------------------------------------------------------------

export type Row = Record<string, unknown>

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

export function row(value: unknown, what = "value"): Row {
  assert.isTrue(isRow(value), `${what} must be an object, got ${JSON.stringify(value)}`)
  return value as Row
}

export function rows(value: unknown, what = "value"): Row[] {
  assert.isTrue(Array.isArray(value), `${what} must be an array, got ${JSON.stringify(value)}`)
  return (value as unknown[]).map((each, i) => row(each, `${what}[${i}]`))
}

export function text(value: unknown, what = "value"): string {
  assert.isTrue(typeof value === "string", `${what} must be a string, got ${JSON.stringify(value)}`)
  return value as string
}

export function integer(value: unknown, what = "value"): number {
  assert.isTrue(Number.isInteger(value), `${what} must be an integer, got ${JSON.stringify(value)}`)
  return value as number
}

export function idOf(record: Row): number {
  return integer(record["id"], "id")
}

// --- decimals: compared digit by digit, never as floats -------------------------------------------------------------

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/

/** Texts outside the grammar of a decimal, `-?\d+(\.\d+)?` (D-04). */
export const MALFORMED_DECIMALS: readonly string[] = [
  ["", "1,5", "1e3", "1E3", "+1", " 1", "1 ", "1.", ".5", "-", "--1", "0x10", "1_000"],
  ["abc", "NaN", "Infinity", "1.2.3", "١", "1\n"]
].flat()

export function digits(value: string): { readonly units: bigint; readonly scale: number } {
  const match = DECIMAL.exec(value)
  if (match === null) throw new Error(`not a decimal: ${JSON.stringify(value)}`)
  const fraction = match[3] ?? ""
  const units = BigInt((match[2] ?? "") + fraction)
  return { units: match[1] === "-" ? -units : units, scale: fraction.length }
}

export function sameDecimal(a: string, b: string): boolean {
  const x = digits(a)
  const y = digits(b)
  const scale = Math.max(x.scale, y.scale)
  return x.units * 10n ** BigInt(scale - x.scale) === y.units * 10n ** BigInt(scale - y.scale)
}

/** Asserts a decimal string with exactly `scale` decimals (F-02: padded) and this value. */
export function isDecimal(value: unknown, expected: string, scale: number, what = "decimal"): void {
  const got = text(value, what)
  assert.isTrue(DECIMAL.test(got), `${what} must be a plain decimal string, got ${JSON.stringify(got)}`)
  assert.strictEqual(digits(got).scale, scale, `${what} must have ${scale} decimals, got ${got}`)
  assert.isTrue(sameDecimal(got, expected), `${what} must equal ${expected}, got ${got}`)
}

// --- time ---------------------------------------------------------------------------------------------------------

export const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/
export const MICROSECONDS = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/
export const DAY = /^\d{4}-\d{2}-\d{2}$/

/** A timestamp as microseconds since 1970, so that instants compare without losing digits. */
export function micros(stamp: unknown, what = "timestamp"): bigint {
  const value = text(stamp, what)
  assert.match(value, TIMESTAMP, what)
  const dot = value.indexOf(".")
  const whole = dot < 0 ? value : `${value.slice(0, dot)}Z`
  const fraction = dot < 0 ? "" : value.slice(dot + 1, -1)
  return BigInt(Date.parse(whole)) * 1000n + BigInt(fraction.padEnd(6, "0").slice(0, 6))
}

/** The inverse of `micros`: an RFC 3339 UTC timestamp with six decimals. */
export function stamp(value: bigint): string {
  const whole = value / 1_000_000n
  const fraction = (value % 1_000_000n).toString().padStart(6, "0")
  return `${new Date(Number(whole) * 1000).toISOString().slice(0, 19)}.${fraction}Z`
}

export function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10)
}

export function plusDays(day: string, days: number): string {
  return dayOf(new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000))
}

// --- the server -----------------------------------------------------------------------------------------------------

interface Server {
  readonly baseUrl: string
  readonly controlUrl: string
  readonly close: () => Promise<void>
}

let running: Promise<Server> | undefined

/** The program under test, by its address: nothing else of it is imported. */
const PROGRAM = new URL("../../connectors/service-v2/reference-server/index.ts", import.meta.url)

async function start(): Promise<Server> {
  const program = (await import(PROGRAM.href)) as { start: (options: { data: string }) => Promise<Server> }
  return program.start({ data: "empty" })
}

function server(): Promise<Server> {
  running ??= start()
  return running
}

/** Call once at the top of a test file. Starts the server, and adds a final test of the common promises. */
export function useServer(): void {
  beforeAll(async () => {
    // Other test files share this module.
    requestIds.clear()
    broken.clear()
    await server()
  }, 300_000)
  afterAll(async () => {
    const current = running
    running = undefined
    if (current === undefined) return
    await (await current).close()
  }, 30_000)
}

/** Call once at the bottom of a test file. */
export function keptPromises(): void {
  it("[ERR-01][ERR-02][ERR-03][ERR-04][ERR-05][D-09][VER-03][GEN-01][B-11] every response in this file keeps the common promises", () => {
    assert.strictEqual([...broken].slice(0, 20).join("\n"), "")
  })
}

export async function baseUrl(): Promise<string> {
  return (await server()).baseUrl
}

// --- HTTP -----------------------------------------------------------------------------------------------------------

export interface Answer {
  readonly request: string
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  readonly bytes: Buffer
  /** The parsed body; undefined when the body is empty or is not JSON. */
  readonly json: unknown
}

export interface Sent {
  readonly method: string
  /** Relative to the base URL, beginning with a slash, sent unchanged. */
  readonly path: string
  readonly token?: string | undefined
  readonly headers?: Record<string, string | string[]> | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent unchanged, instead of `body`. */
  readonly raw?: string | Buffer | undefined
  /** Sent on a connection of its own, without the check of the common promises (for injected faults). */
  readonly faulty?: boolean | undefined
  /** The path is relative to the host and not to the base URL. */
  readonly absolute?: boolean | undefined
  readonly timeoutMs?: number | undefined
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 })

function exchange(url: URL, rawPath: string, sent: Sent, again = true): Promise<Answer> {
  const payload =
    sent.raw !== undefined
      ? Buffer.from(sent.raw as string)
      : sent.body !== undefined
        ? Buffer.from(JSON.stringify(sent.body))
        : undefined
  const headers: Record<string, string | string[]> = {}
  if (sent.token !== undefined) headers["authorization"] = `Bearer ${sent.token}`
  if (payload !== undefined) {
    headers["content-type"] = "application/json"
    headers["content-length"] = String(payload.length)
  }
  for (const [name, value] of Object.entries(sent.headers ?? {})) headers[name.toLowerCase()] = value
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        host: url.hostname,
        port: url.port,
        method: sent.method,
        path: rawPath,
        headers,
        agent: sent.faulty === true ? false : agent
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("error", reject)
        response.on("aborted", () => reject(new Error("aborted")))
        response.on("end", () => {
          const bytes = Buffer.concat(chunks)
          const body = bytes.toString("utf8")
          let json: unknown
          try {
            json = body === "" ? undefined : JSON.parse(body)
          } catch {
            json = undefined
          }
          resolve({
            request: `${sent.method} ${sent.path}`,
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: body,
            bytes,
            json
          })
        })
      }
    )
    request.setTimeout(sent.timeoutMs ?? 30_000, () =>
      request.destroy(new Error(`no answer: ${sent.method} ${sent.path}`))
    )
    request.on("error", (cause: NodeJS.ErrnoException) => {
      // The server has just closed an idle connection: nothing was processed, so the request is repeated on a new one.
      if (again && sent.faulty !== true && request.reusedSocket && cause.code === "ECONNRESET") {
        exchange(url, rawPath, sent, false).then(resolve, reject)
      } else {
        reject(cause)
      }
    })
    request.end(payload)
  })
}

/** Sends one request to the API, exactly as described. */
export async function send(sent: Sent): Promise<Answer> {
  const url = new URL(await baseUrl())
  const answer = await exchange(
    url,
    sent.absolute === true ? sent.path : url.pathname.replace(/\/$/, "") + sent.path,
    sent
  )
  if (sent.faulty !== true) hold(sent, answer)
  return answer
}

// --- the promises that every answer keeps -----------------------------------------------------------------------

/** The 50 documented error codes with their one status each. */
export const CODES: Readonly<Record<string, number>> = Object.fromEntries(
  [...ERROR_CODES].map(([code, { status }]) => [code, status])
)

const broken = new Set<string>()
const requestIds = new Set<string>()

function hold(sent: Sent, answer: Answer): void {
  const complain = (what: string) => {
    broken.add(`${answer.request.slice(0, 120)} -> ${answer.status}: ${what}`)
  }
  const requestId = answer.headers["svc-request-id"]
  if (typeof requestId !== "string" || requestId === "") complain("no Svc-Request-Id header")
  else if (requestIds.has(requestId)) complain("Svc-Request-Id is not unique")
  else requestIds.add(requestId)
  if (answer.headers["x-request-id"] !== requestId) complain("X-Request-Id differs from Svc-Request-Id")
  if (sent.token !== undefined && answer.text.includes(sent.token)) complain("the answer contains the token")
  if (answer.status >= 500 && answer.status !== 501)
    complain(`an unexpected server error: ${answer.text.slice(0, 200)}`)
  if (answer.status === 405 && answer.headers.allow === undefined) complain("a 405 without Allow")
  if (answer.status === 401 && answer.headers["www-authenticate"] === undefined)
    complain("a 401 without WWW-Authenticate")
  if (answer.status === 429 && answer.headers["retry-after"] === undefined) complain("a 429 without Retry-After")
  if (sent.method === "HEAD") {
    if (answer.text !== "") complain("an answer to HEAD with a body")
    return
  }
  const type = answer.headers["content-type"] ?? ""
  if (answer.status >= 400 || !type.startsWith("application/pdf")) {
    if (!/^application\/json\b/i.test(type)) complain(`content-type ${JSON.stringify(type)}`)
    if (answer.json === undefined) complain("the body is not JSON")
  }
  if (answer.status >= 400) {
    const fault = envelopeFault(answer)
    if (fault !== undefined) complain(fault)
  } else if (isRow(answer.json) && "error" in answer.json) complain("a success with an error key")
}

function envelopeFault(answer: Answer): string | undefined {
  if (!isRow(answer.json)) return "the error body is not an object"
  const keys = Object.keys(answer.json)
  if (keys.length !== 1 || keys[0] !== "error") return `the error body has the keys ${keys.join(", ")}`
  const error = answer.json["error"]
  const fault = errorFault(error)
  if (fault !== undefined) return fault
  const code = String(row(error)["code"])
  if (CODES[code] !== answer.status) return `code ${code} belongs to ${CODES[code]}`
  return undefined
}

/** The problem of an error object (the value of `error`, in an envelope or in a batch result). */
export function errorFault(error: unknown): string | undefined {
  if (!isRow(error)) return "error is not an object"
  if (typeof error["code"] !== "string") return "error.code is not a string"
  if (CODES[error["code"]] === undefined) return `error.code ${error["code"]} is not documented`
  if (typeof error["message"] !== "string" || error["message"] === "") return "error.message is not a non-empty string"
  if ("field" in error && (typeof error["field"] !== "string" || error["field"] === "")) {
    return "error.field must be a string, or left out"
  }
  if ("legacy_code" in error) return "error.legacy_code must be left out (D-09)"
  for (const key of Object.keys(error)) {
    if (!["code", "message", "field", "errors", "current"].includes(key)) return `error has an unknown key ${key}`
  }
  if ("errors" in error) {
    if (!Array.isArray(error["errors"]) || error["errors"].length === 0) return "error.errors must be a non-empty array"
    for (const entry of error["errors"] as unknown[]) {
      if (!isRow(entry)) return "an entry of error.errors is not an object"
      for (const key of ["field", "code", "message"]) {
        if (typeof entry[key] !== "string" || entry[key] === "") return `error.errors[].${key} must be a string`
      }
    }
  }
  return undefined
}

// --- assertions -----------------------------------------------------------------------------------------------------

function shown(answer: Answer): string {
  return `${answer.request} -> ${answer.status} ${answer.text.slice(0, 600)}`
}

export function succeeded(answer: Answer, status = 200): Row {
  assert.strictEqual(answer.status, status, shown(answer))
  return row(answer.json, shown(answer))
}

/** Asserts an error with this code (and its one status), and returns the error object. */
export function refused(answer: Answer, code: string, field?: string): Row {
  assert.strictEqual(answer.status, CODES[code], `expected ${code}: ${shown(answer)}`)
  assert.isUndefined(envelopeFault(answer), shown(answer))
  const error = row(row(answer.json)["error"])
  assert.strictEqual(error["code"], code, shown(answer))
  if (field !== undefined) assert.strictEqual(error["field"], field, `field of ${shown(answer)}`)
  return error
}

/** The `field` and `code` of each entry of error.errors, as `field:code`, sorted. */
export function entries(error: Row): string[] {
  return rows(error["errors"] ?? [], "error.errors")
    .map((entry) => `${String(entry["field"])}:${String(entry["code"])}`)
    .sort()
}

/** Asserts 400 invalid_request with exactly these `field:code` pairs in errors[]. */
export function refusedEntries(answer: Answer, ...expected: string[]): Row {
  const error = refused(answer, "invalid_request")
  assert.deepEqual(entries(error), [...expected].sort(), shown(answer))
  return error
}

export interface Challenge {
  readonly scheme: string
  readonly params: Readonly<Record<string, string>>
}

/** Reads WWW-Authenticate with quoted and bare values alike (C-01). */
export function challenge(answer: Answer): Challenge {
  const header = answer.headers["www-authenticate"]
  const value = text(Array.isArray(header) ? header[0] : header, `WWW-Authenticate of ${shown(answer)}`)
  const space = value.indexOf(" ")
  assert.isAbove(space, 0, value)
  const params: Record<string, string> = {}
  const pattern = /([A-Za-z_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g
  for (const match of value.slice(space + 1).matchAll(pattern)) {
    params[String(match[1]).toLowerCase()] = match[2] ?? match[3] ?? ""
  }
  return { scheme: value.slice(0, space), params }
}

/** Asserts a refusal for lack of this scope. */
export function outOfScope(answer: Answer, scope: string): void {
  refused(answer, "insufficient_scope")
  const { scheme, params } = challenge(answer)
  assert.strictEqual(scheme, "Bearer")
  assert.strictEqual(params["error"], "insufficient_scope")
  assert.strictEqual(params["scope"], scope)
  assert.isNotEmpty(params["realm"] ?? "")
}

export function allowed(answer: Answer): string[] {
  refused(answer, "method_not_allowed")
  return text(answer.headers.allow, "Allow")
    .split(",")
    .map((verb) => verb.trim())
    .filter((verb) => verb !== "")
}

export function etagOf(answer: Answer): string {
  const etag = text(answer.headers.etag, `ETag of ${shown(answer)}`)
  assert.match(etag, /^"[^"]*"$/, "a strong ETag")
  return etag
}

export interface Page {
  readonly data: Row[]
  readonly limit: number
  readonly hasMore: boolean
  readonly next: string | null
  readonly syncedThrough: string | undefined
}

/** Asserts a list answer of the form of A-01, and parses it. */
export function page(answer: Answer): Page {
  const body = succeeded(answer)
  assert.deepEqual(Object.keys(body).sort(), ["_meta", "data"], "the list envelope")
  const meta = row(body["_meta"], "_meta")
  for (const key of Object.keys(meta)) {
    assert.include(["limit", "has_more", "next_cursor", "synced_through"], key, "_meta")
  }
  const data = rows(body["data"], "data")
  const hasMore = meta["has_more"]
  const next = meta["next_cursor"]
  assert.isTrue(typeof hasMore === "boolean", "_meta.has_more")
  if (hasMore === true) assert.isTrue(typeof next === "string" && next !== "", "next_cursor when has_more")
  else assert.isNull(next, "next_cursor at the end")
  const through = meta["synced_through"]
  if (through !== undefined) assert.match(text(through, "synced_through"), TIMESTAMP)
  return {
    data,
    limit: integer(meta["limit"], "_meta.limit"),
    hasMore: hasMore as boolean,
    next: next as string | null,
    syncedThrough: through as string | undefined
  }
}

// --- the control plane ----------------------------------------------------------------------------------------------

export async function controlRaw(method: string, controlPath: string, body?: unknown, raw?: string): Promise<Answer> {
  const url = new URL((await server()).controlUrl)
  return exchange(url, controlPath, { method, path: controlPath, body, raw })
}

export async function control(method: string, controlPath: string, body?: unknown): Promise<Answer> {
  const answer = await controlRaw(method, controlPath, body)
  // After a reset, the server may count its requests from the start.
  if (controlPath === "/reset") requestIds.clear()
  assert.isTrue(answer.status >= 200 && answer.status < 300, `control plane: ${shown(answer)}`)
  return answer
}

export interface TokenOptions {
  readonly company: number
  readonly scopes?: readonly string[]
  readonly user?: string | number
  readonly supervisor?: boolean
  readonly active?: boolean
  readonly usercompany?: number
  readonly expires?: string
}

export async function mint(options: TokenOptions): Promise<{ readonly token: string; readonly tokenid: unknown }> {
  const answer = await control("POST", "/tokens", { scopes: ["*"], ...options })
  assert.strictEqual(answer.status, 201, shown(answer))
  const body = row(answer.json)
  return { token: text(body["token"], "token"), tokenid: body["tokenid"] }
}

export async function tokenFor(company: number, ...scopes: string[]): Promise<string> {
  return (await mint({ company, scopes })).token
}

/** The lines of an NDJSON answer. */
export function ndjson(answer: Answer): Row[] {
  return answer.text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, i) => row(JSON.parse(line), `line ${i + 1}`))
}

/** Inserts rows directly into the store, without rules, and returns them as stored. */
export async function put(company: number, resource: string, records: readonly Row[], at?: string): Promise<Row[]> {
  const answer = await control("POST", "/records", { company, resource, records, ...(at === undefined ? {} : { at }) })
  const stored = rows(row(answer.json)["records"], `records stored, in ${shown(answer)}`)
  assert.strictEqual(stored.length, records.length, "one answer per record")
  return stored
}

export async function state(company: number, resource: string): Promise<Row[]> {
  return ndjson(await control("GET", `/state?company=${company}&resource=${resource}`))
}

export async function serverNow(): Promise<bigint> {
  return micros(row((await control("GET", "/clock")).json)["now"], "now of the clock")
}

export async function today(): Promise<string> {
  return stamp(await serverNow()).slice(0, 10)
}

/** Stops the server's clock at its current time (or at `now`) and returns that instant. */
export async function freeze(now?: string): Promise<bigint> {
  const instant = now ?? stamp(await serverNow())
  await control("POST", "/clock", { manual: true, now: instant })
  return serverNow()
}

export async function thaw(): Promise<void> {
  await control("POST", "/clock", { manual: false })
}

export async function advance(seconds: number): Promise<void> {
  await control("POST", "/clock", { advanceSeconds: seconds })
}

// --- companies ------------------------------------------------------------------------------------------------------

const firstCompany = 1000
let companies = 0
let names = 0

/** A short name that no other test uses (at most 20 characters with a prefix of up to 8). */
export function fresh(prefix = "n"): string {
  names += 1
  return `${prefix}-${names}`
}

export interface Company {
  readonly id: number
  readonly token: string
  readonly send: (sent: Sent) => Promise<Answer>
  readonly get: (path: string) => Promise<Answer>
  readonly post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly patch: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly del: (path: string, headers?: Record<string, string>) => Promise<Answer>
  /** Sends a request, with an empty object as its body if the method has one. */
  readonly probe: (method: string, path: string) => Promise<Answer>
  /** Posts a body and asserts the error. */
  readonly refuses: (path: string, body: unknown, code: string, field?: string) => Promise<Row>
  /** Creates a record and asserts the 201. */
  readonly create: (resource: string, body: Row) => Promise<Row>
  /** Retrieves a record and asserts the 200. */
  readonly read: (resource: string, id: number) => Promise<Row>
  /** Every page of a list, after the first one if it is given. */
  readonly pages: (path: string, first?: Page) => Promise<Page[]>
  /** Every record of a list. */
  readonly list: (path: string) => Promise<Row[]>
  readonly put: (resource: string, records: readonly Row[], at?: string) => Promise<Row[]>
  readonly settings: (settings: Row) => Promise<void>
  /** The same company through another token. */
  readonly with: (...scopes: string[]) => Promise<Company>
}

export function companyOf(id: number, token: string): Company {
  const self: Company = {
    id,
    token,
    send: (sent) => send({ token, ...sent }),
    get: (path) => send({ method: "GET", path, token }),
    post: (path, body, headers) => send({ method: "POST", path, token, body, headers }),
    patch: (path, body, headers) => send({ method: "PATCH", path, token, body, headers }),
    del: (path, headers) => send({ method: "DELETE", path, token, headers }),
    probe: (method, path) => self.send({ method, path, ...(/POST|PATCH|PUT/.test(method) ? { body: {} } : {}) }),
    refuses: async (path, body, code, field) => refused(await self.post(path, body), code, field),
    create: async (resource, body) => succeeded(await self.post(`/${resource}`, body), 201),
    read: async (resource, record) => succeeded(await self.get(`/${resource}/${record}`)),
    pages: async (path, first) => {
      const all: Page[] = first === undefined ? [page(await self.get(path))] : [first]
      const join = path.includes("?") ? "&" : "?"
      for (let next = all[0]?.next ?? null; next !== null; next = all.at(-1)?.next ?? null)
        all.push(page(await self.get(`${path}${join}cursor=${encodeURIComponent(next)}`)))
      return all
    },
    list: async (path) => (await self.pages(path)).flatMap(({ data }) => data),
    put: (resource, records, at) => put(id, resource, records, at),
    settings: async (settings) => {
      await control("PUT", `/companies/${id}`, settings)
    },
    with: async (...scopes) => companyOf(id, await tokenFor(id, ...scopes))
  }
  return self
}

/** A company that no other test uses, with a token of all scopes (or these). */
export async function newCompany(...scopes: string[]): Promise<Company> {
  companies += 1
  const id = firstCompany + companies
  return companyOf(id, await tokenFor(id, ...(scopes.length === 0 ? ["*"] : scopes)))
}

/** A test with as many companies of its own as `check` takes. */
export function it(title: string, check: (...companies: Company[]) => Promise<void> | void, timeoutMs?: number): void {
  const run = async () => {
    const own: Company[] = []
    while (own.length < check.length) own.push(await newCompany())
    await check(...own)
  }
  const declare: (title: string, run: () => Promise<void>, timeoutMs?: number) => void = test
  declare(title, run, timeoutMs)
}

/** One field of each record. */
export function valuesOf(records: readonly Row[], name: string): unknown[] {
  return records.map((record) => record[name])
}

export function ids(records: readonly Row[]): number[] {
  return records.map(idOf)
}

export function query(params: Record<string, string | number | boolean>): string {
  const search = Object.entries(params).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`
  )
  return search.length === 0 ? "" : `?${search.join("&")}`
}
