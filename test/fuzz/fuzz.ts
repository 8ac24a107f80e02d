/**
 * The fuzzer `npm run fuzz`: random requests of every kind against the reference server, and the conditions that hold
 * after each.
 *
 * After each request: the response is one that the OpenAPI document allows for its path and status. It is not a 500,
 * not a defect, and in time. A rejected write and a read change nothing. A repeated Idempotency-Key returns the first
 * response. The server and the document agree whether a request is valid. From time to time, and at the end: the
 * invariants of the records.
 *
 *   npm run fuzz -- --requests 100000 --seed 1
 */
import { parseArgs } from "node:util"
import type { Core } from "../../connectors/service-v2/reference-server/Core.ts"
import { core } from "../../connectors/service-v2/reference-server/Core.ts"
import type { Answer } from "../../connectors/service-v2/reference-server/http/Message.ts"
import { readInstant } from "../../connectors/service-v2/reference-server/time.ts"
import type { Contract } from "../support/contract.ts"
import { contract } from "../support/contract.ts"
import { Chance } from "./Chance.ts"
import { broken, stateOf } from "./invariants.ts"
import type { Draft, Tokens } from "./requests.ts"
import { Requests, base } from "./requests.ts"

export interface FuzzOptions {
  readonly requests: number
  readonly seed: number
  /** The longest time of an answer; null where the clock of the machine does not count. */
  readonly answerMsMax: number | null
  /** Number of failures that ends the run. */
  readonly failuresMax: number
}

export interface Failure {
  readonly index: number
  readonly problems: ReadonlyArray<string>
  readonly draft: Draft
  readonly status: number
  readonly text: string
}

export interface Figures {
  readonly requests: number
  readonly seconds: number
  readonly slowestMs: number
  readonly byStatus: Readonly<Record<string, number>>
  readonly codes: ReadonlyMap<string, number>
  /** Operations of the document that answered 2xx at least once, and the number of all. */
  readonly succeeded: readonly [number, number]
  readonly commits: number
  readonly replays: number
  readonly failures: ReadonlyArray<Failure>
}

/** Longer than any request may take in process. */
const invariantEvery = 2500

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

const control = (served: Core, method: string, url: string, body?: unknown): Record<string, unknown> => {
  const response = served.control({ method, url, headers: {}, body: body === undefined ? null : bytes(body) })
  if (response.status >= 300) throw new Error(`${method} ${url}: ${response.body}`)
  return response.body === "" ? {} : (JSON.parse(response.body) as Record<string, unknown>)
}

const issue = (served: Core, options: object): string =>
  String(control(served, "POST", "/tokens", { company: 1, scopes: ["*"], ...options })["token"])

const tokensOf = (served: Core): Tokens => {
  const revoked = issue(served, {})
  control(served, "POST", "/tokens/revoke", { token: revoked })
  return {
    full: issue(served, {}),
    other: issue(served, { company: 2 }),
    weak: [
      revoked,
      issue(served, { scopes: ["orders:read"] }),
      issue(served, { scopes: ["setup:write", "orders:write", "customers:write"] }),
      issue(served, { expires: "2020-01-01T00:00:00Z" }),
      issue(served, { supervisor: false }),
      issue(served, { active: false }),
      issue(served, { usercompany: 2 })
    ]
  }
}

interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
}

const replyOf = ({ status, headers, body }: Answer): HttpReply => ({ status, headers, text: body })

/** The code of an error body; null when there is none. */
const codeOf = (body: unknown): string | null => {
  const code = (body as { error?: { code?: unknown } } | null)?.error?.code
  return typeof code === "string" ? code : null
}

/** 400 that the document cannot foresee: cursors are opaque, and one field can depend on another. */
const isForeseeable = (body: unknown): boolean => {
  const { field, errors } = ((body as { error?: unknown }).error ?? {}) as {
    field?: string
    errors?: ReadonlyArray<unknown>
  }
  if (field === "cursor" || field === "modifiedsince" || field === "limit") return false
  return !(errors?.length === 1 && (errors[0] as { code: string }).code === "required")
}

const differences = (openapi: Contract, draft: Draft, response: HttpReply, body: unknown): ReadonlyArray<string> => {
  if (draft.url.includes("/openapi.json")) return []
  // As the server does, a byte order mark is skipped.
  const text = draft.body === null ? null : new TextDecoder().decode(draft.body)
  const request = {
    method: draft.method,
    url: draft.url.replace(/^\/(?:!|%21)\/api\/v2/, ""),
    headers: draft.headers,
    text
  }
  if (response.status >= 300 && response.status !== 400) return []
  // The two sides are compared only where both check the same: a replayed request was checked at its first response.
  if (response.headers["Idempotent-Replayed"] !== undefined) return []
  const wrong = openapi.requestProblems(request)
  if (response.status === 400) {
    // Two texts that only the server refuses: nesting deeper than the stack, and the leap second at the end of 9999.
    const isBeyond = text !== null && (text.split("[").length > 400 || text.includes("9999-12-31T23:59:60"))
    // The server also parses a body that the operation does not need.
    if (isBeyond || (draft.method === "GET" && codeOf(body) === "invalid_json")) return []
    return wrong.length === 0 && isForeseeable(body) ? ["the document allows this request, the server does not"] : []
  }
  // In a batch each record is checked separately.
  if (response.status === 207) return []
  return wrong.length === 0 ? [] : [`the server accepts this request, the document does not: ${wrong.join("; ")}`]
}

export const fuzz = async (options: FuzzOptions, progress: (done: number) => void = () => {}): Promise<Figures> => {
  const chance = new Chance(options.seed)
  const defects: Array<unknown> = []
  const start = readInstant("2026-03-16T09:00:00Z")!
  const served = core({ now: () => start, onDefect: (error) => defects.push(error), data: "demo" })
  control(served, "POST", "/clock", { manual: true })
  control(served, "PUT", "/limits", { requestsPerMinute: null })
  const { body: document } = served.handle({ method: "GET", url: `${base}/openapi.json`, headers: {}, body: null })
  const openapi = contract(JSON.parse(document) as Record<string, unknown>)
  const requests = new Requests(chance, openapi, tokensOf(served))
  const { world } = served
  const failures: Array<Failure> = []
  const byStatus: Record<string, number> = {}
  const codes = new Map<string, number>()
  const succeeded = new Set<string>()
  const firstAnswers = new Map<string, { readonly print: string; readonly response: HttpReply }>()
  const commitsBefore = world.store.history.length
  let slowestMs = 0
  let replays = 0
  const began = performance.now()

  const disturb = () => {
    const company = chance.pick(["/companies/1", "/companies/2"])
    const set = (settings: object) => control(served, "PUT", company, settings)
    chance.pick<() => unknown>([
      () => set({ closedThrough: chance.pick(["2025-12-31", "2026-03-15", "2026-03-31", null]) }),
      () => set({ closedThrough: null }),
      () => set({ features: { [chance.pick(world.store.catalogue.features)]: chance.is(0.8) } }),
      () => set({ recordLimits: { [chance.pick(["customers", "items"])]: chance.pick([1, null]) } }),
      () => control(served, "POST", "/clock", { advanceSeconds: chance.pick([1, 60, 3600, 86_400]) }),
      () => control(served, "PUT", "/limits", { requestsPerMinute: chance.pick([null, null, 3]) })
    ])()
  }
  /** Removes limits and switches features on: a rejection of every request would hide other failures. */
  const settle = () => {
    control(served, "PUT", "/limits", { requestsPerMinute: null })
    for (const company of ["/companies/1", "/companies/2"]) {
      const features = Object.fromEntries(world.store.catalogue.features.map((name) => [name, true]))
      control(served, "PUT", company, { features, closedThrough: null, recordLimits: { customers: null, items: null } })
    }
  }

  for (let index = 0; index < options.requests && failures.length < options.failuresMax; index++) {
    if (index % 1000 === 0) progress(index)
    if (chance.is(0.004)) disturb()
    else if (chance.is(0.01)) settle()
    const draft = requests.draw()
    const problems: Array<string> = []
    const commits = world.store.history.length
    const isWatched = chance.is(0.01)
    const before = isWatched ? stateOf(world.store) : ""
    const at = performance.now()
    let response: HttpReply = { status: 0, headers: {}, text: "" }
    try {
      const answer = served.handle(draft)
      response = replyOf(answer.pending === undefined ? answer : await answer.pending)
    } catch (error) {
      problems.push(`thrown: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    const took = performance.now() - at
    slowestMs = Math.max(slowestMs, took)
    if (options.answerMsMax !== null && took > options.answerMsMax) problems.push(`took ${Math.round(took)} ms`)
    for (const defect of defects.splice(0)) {
      problems.push(`defect: ${defect instanceof Error ? (defect.stack ?? defect.message) : String(defect)}`)
    }
    let body: unknown = null
    try {
      body = response.text === "" || response.text.startsWith("%PDF") ? null : JSON.parse(response.text)
    } catch {
      problems.push("the answer is not JSON")
    }
    const path = draft.url.replace(/^\/(?:!|%21)\/api\/v2/, "")
    const isInside = path !== draft.url
    const code = codeOf(body)
    byStatus[response.status] = (byStatus[response.status] ?? 0) + 1
    if (code !== null) codes.set(code, (codes.get(code) ?? 0) + 1)
    if (response.status === 500) problems.push("answered 500")
    if (isInside) {
      problems.push(...openapi.answerProblems({ method: draft.method, url: path }, response))
      problems.push(...differences(openapi, draft, response, body))
    }
    const isChanged = world.store.history.length !== commits
    if (isChanged && (response.status >= 300 || draft.method === "GET")) problems.push("it left a change behind")
    if (isWatched && !isChanged && stateOf(world.store) !== before) problems.push("records changed without a commit")
    const key = draft.headers["idempotency-key"]
    if (key !== undefined && response.status < 300) {
      const name = `${draft.headers["authorization"] ?? ""} ${key}`
      const print = `${draft.method} ${draft.url} ${Buffer.from(draft.body ?? []).toString("base64")}`
      const first = firstAnswers.get(name)
      const isReplayed = response.headers["Idempotent-Replayed"] !== undefined
      if (isReplayed) {
        replays++
        if (first !== undefined && (first.print !== print || first.response.text !== response.text)) {
          problems.push("the replay is not the first answer")
        }
      } else firstAnswers.set(name, { print, response })
    }
    if (response.status < 300) {
      const match = openapi.find(draft.method, path.split("?")[0]!)
      if (match?.operation !== null && match !== null) succeeded.add(`${draft.method} ${match.template}`)
    }
    requests.remember(draft, response.status, response.headers, body)
    if (index % invariantEvery === invariantEvery - 1 || index === options.requests - 1)
      problems.push(...broken(world.store))
    if (problems.length > 0) failures.push({ index, problems, draft, status: response.status, text: response.text })
  }
  const operations = Object.values(openapi.document["paths"] as object).flatMap((item) =>
    Object.keys(item as object)
  ).length
  return {
    requests: options.requests,
    seconds: (performance.now() - began) / 1000,
    slowestMs,
    byStatus,
    codes,
    succeeded: [succeeded.size, operations],
    commits: world.store.history.length - commitsBefore,
    replays,
    failures
  }
}

/** A failure with everything that is needed to repeat it. */
export const printFailure = ({ index, problems, draft, status, text }: Failure, seed: number): string => {
  const body = draft.body === null ? "no body" : JSON.stringify(Buffer.from(draft.body).toString("utf8").slice(0, 1500))
  return [
    `request ${index} of seed ${seed}: ${draft.method} ${draft.url.slice(0, 400)}`,
    `  headers ${JSON.stringify(draft.headers)}`,
    `  body ${body}`,
    `  answered ${status} ${text.slice(0, 600)}`,
    ...problems.map((problem) => `  ! ${problem.slice(0, 1500)}`)
  ].join("\n")
}

const main = async () => {
  const { values } = parseArgs({
    options: {
      requests: { type: "string", default: "20000" },
      seed: { type: "string", default: "1" },
      failures: { type: "string", default: "10" }
    }
  })
  const seed = Number(values.seed)
  const figures = await fuzz(
    {
      requests: Number(values.requests),
      seed,
      answerMsMax: 2000,
      failuresMax: Number(values.failures)
    },
    (done) => {
      if (process.stderr.isTTY) process.stderr.write(`\r${done} requests`)
    }
  )
  const { failures, codes, byStatus, seconds, succeeded } = figures
  for (const failure of failures) process.stdout.write(`${printFailure(failure, seed)}\n\n`)
  const rate = Math.round(figures.requests / seconds)
  process.stdout.write(
    `${[
      `seed ${seed}: ${figures.requests} requests in ${seconds.toFixed(1)} s, ${rate}/s, slowest ${figures.slowestMs.toFixed(0)} ms`,
      `operations that succeeded: ${succeeded[0]} of ${succeeded[1]}; commits ${figures.commits}; replays ${figures.replays}`,
      `statuses: ${Object.entries(byStatus)
        .map(([status, count]) => `${status} ${count}`)
        .join(", ")}`,
      `codes: ${[...codes]
        .toSorted((a, b) => b[1] - a[1])
        .map(([code, count]) => `${code} ${count}`)
        .join(", ")}`,
      failures.length === 0 ? "no failure" : `${failures.length} failures`
    ].join("\n")}\n`
  )
  process.exitCode = failures.length === 0 ? 0 : 1
}

if (import.meta.main) await main()
