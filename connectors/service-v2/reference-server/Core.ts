/**
 * The whole server without sockets.
 *
 * Promise: synchronous and deterministic: the same seed, clock and requests give the same answers byte by byte. Faults
 * are drawn here. Faults of the wire are attached to the answer ({@link Answer.wire}) for the code that sends it.
 */
import { serviceV2 } from "../catalogue/index.ts"
import { ApiError, printEnvelope } from "./ApiError.ts"
import { control } from "./control/control.ts"
import { noNetwork } from "./events/Network.ts"
import type { Network } from "./events/Network.ts"
import type { Fault } from "./http/faults.ts"
import { fingerprint, keyOf } from "./http/idempotency.ts"
import type { Notes } from "./http/journal.ts"
import { exchangeOf, notes, withoutSecrets } from "./http/journal.ts"
import type { Answer, Request } from "./http/Message.ts"
import { basePath, below, finish, requestIdHeaders, serve } from "./http/serve.ts"
import { authenticate } from "./http/tokens.ts"
import type { SeedOptions } from "./seed/seed.ts"
import { serverClock } from "./ServerClock.ts"
import { printHttpDate, printInstant } from "./time.ts"
import { readSnapshot } from "./snapshot/read.ts"
import { pages } from "./ui/Entry.ts"
import { World } from "./World.ts"
import type { WorldState } from "./World.ts"
import { pathOf, splitWorld, Worlds } from "./worlds/Worlds.ts"

export interface CoreOptions extends Partial<SeedOptions> {
  /** Microseconds since 1970, from the caller's clock. */
  readonly now: () => number
  /** The absolute base address, for Link headers. */
  readonly baseUrl?: string
  /** A snapshot file: the state of the main world at the start, and the snapshot `loaded`. */
  readonly snapshot?: string
  /** The connection to webhook receivers; without it no delivery arrives. */
  readonly network?: Network
  /** Whether the caller admits only requests with a control token to the control plane. */
  readonly hasControlToken?: boolean
  /** The token of the forms of its pages; without it the pages only read. */
  readonly formToken?: string
  /** Called with each defect of the server. */
  readonly onDefect?: (error: unknown) => void
}

export interface Core {
  /** The main world. */
  readonly world: World
  readonly worlds: Worlds
  /** Answers a request of the API, including a fault that hits it. */
  readonly handle: (request: Request) => Answer
  /** Answers a request of the control plane, and of its pages below `/ui/`. */
  readonly control: (request: Request) => Answer
  /** Draws the fault that hits a request; to be called once per request. */
  readonly draw: (request: Request) => Fault | null
  /** Answers a request under a fault that was drawn. */
  readonly answer: (request: Request, fault: Fault | null) => Answer
  /** Marks the request's Idempotency-Key as running while the request waits; returns the release function. */
  readonly hold: (request: Request) => () => void
  /** Runs what is due by the running clock; to be called regularly. */
  readonly tick: () => Promise<void>
  /** Cancels the deliveries in flight. */
  readonly close: () => void
  setAddresses: (addresses: Addresses) => void
}

/** The addresses by which the sender of a request reaches the listeners, without a path and a slash at the end. */
export interface Addresses {
  /** The API's, for a request of the API. */
  readonly api: (request: Request) => string
  /** Both, for a request of the control plane. */
  readonly control: (request: Request) => { readonly api: string; readonly control: string }
}

/** The name of the snapshot with which the server was started. */
export const loadedName = "loaded"

const html =
  "<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"

const codeOf: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "request_in_progress",
  422: "rule_violation",
  429: "rate_limited",
  501: "not_implemented"
}

/** The body of a `status` fault without a body. */
const faultBody = ({ status, code }: Fault): string => {
  const errorCode = code ?? codeOf[status ?? 500] ?? "server_error"
  try {
    return printEnvelope(new ApiError(errorCode, "a fault that the control plane asked for"))
  } catch {
    return JSON.stringify({ error: { code: errorCode, message: "a fault that the control plane asked for" } })
  }
}

/** What the journal says of an answer. */
interface Outcome {
  /** Null when none was made. */
  readonly answer: Answer | null
  readonly status: number | null
  readonly tokenid: number | null
  readonly fault: string | null
  readonly noted: Notes
}

/** Adds an entry to the journal of requests. */
const addToJournal = (world: World, request: Request, requestId: string, outcome: Outcome) => {
  const { path, query } = below(request.url)
  const { answer, status, tokenid, fault, noted } = outcome
  world.journal.add(
    {
      time: printInstant(world.clock.now()),
      method: request.method,
      path: withoutSecrets(path === null ? request.url : query === "" ? path : `${path}?${query}`),
      status,
      tokenid,
      requestid: requestId,
      fault,
      ...noted
    },
    answer === null ? null : exchangeOf(request, answer)
  )
}

/** The answer of a fault in place of the service's own. */
const faultAnswer = (world: World, fault: Fault, requestId: string): Answer => {
  const headers = { Date: printHttpDate(world.clock.now()), ...requestIdHeaders(world, requestId) }
  switch (fault.kind) {
    case "html":
      return {
        status: fault.status ?? 502,
        headers: { ...headers, "Content-Type": "text/html; charset=utf-8", ...fault.headers },
        body: fault.body ?? html,
        wire: null
      }
    case "garbage":
      return {
        status: fault.status ?? 200,
        headers: { ...headers, "Content-Type": "application/json", ...fault.headers },
        body: fault.body ?? '{"data":[{"id":1,"na',
        wire: null
      }
    default: {
      const status = fault.status ?? 500
      const waiting = status === 429 && fault.headers === null ? { "Retry-After": "1" } : {}
      const body = fault.body ?? faultBody(fault)
      return finish(world, { status, body, headers: { ...waiting, ...fault.headers } }, requestId, notes())
    }
  }
}

/** Answers a request under a fault that was drawn. */
const answerUnder = (world: World, baseUrl: string, request: Request, fault: Fault | null): Answer => {
  const requestId = world.nextRequestId()
  const kind = fault?.kind ?? null
  if (kind === "reset") {
    addToJournal(world, request, requestId, { answer: null, status: null, tokenid: null, fault: kind, noted: notes() })
    return { status: 0, headers: {}, body: "", wire: { kind, ms: 0, bytes: null } }
  }
  if (fault !== null && (kind === "status" || kind === "html" || kind === "garbage")) {
    const answer = faultAnswer(world, fault, requestId)
    const { status } = answer
    addToJournal(world, request, requestId, { answer, status, tokenid: null, fault: kind, noted: notes() })
    return answer
  }
  const { answer: served, token, noted } = serve(world, request, requestId, baseUrl)
  const { journal } = world
  const sent = (answer: Answer): Answer => {
    const status = kind === "dropResponse" ? null : answer.status
    // A reset or a restore meanwhile began another journal, to which the request does not belong.
    if (world.journal === journal) {
      addToJournal(world, request, requestId, { answer, status, tokenid: token?.id ?? null, fault: kind, noted })
    }
    if (fault === null || (kind !== "truncate" && kind !== "dropResponse" && kind !== "slowBody")) return answer
    return { ...answer, wire: { kind, ms: fault.ms, bytes: fault.bytes } }
  }
  return served.pending === undefined ? sent(served) : { ...served, pending: served.pending.then(sent) }
}

/** Marks the request's Idempotency-Key as running; returns the release function. */
const holdKey = (world: World, request: Request): (() => void) => {
  try {
    const now = world.clock.now()
    const token = authenticate(world.tokens, request.headers["authorization"], now, null)
    const key = request.method === "GET" ? null : keyOf(token.id, request)
    const { idempotency } = world
    if (key !== null && idempotency.claim(key, fingerprint(request), now)) return () => idempotency.release(key)
  } catch {
    // The request is refused later, when it is handled.
  }
  return () => {}
}

/** The answer to a request for a world that does not exist; it changes no other world. */
const noWorld = (world: World, name: string | null): Answer => {
  const error = new ApiError("not_found", `there is no world ${String(name)}`)
  return finish(world, { status: 404, body: printEnvelope(error) }, "req_000000000000", notes())
}

export const core = (options: CoreOptions): Core => {
  const data = { data: options.data ?? "empty", rows: options.rows ?? 200_000, seed: options.seed ?? 1 } as const
  const make = (start: SeedOptions | WorldState) =>
    new World(serverClock(options.now), start, options.onDefect ?? (() => {}), options.network ?? noNetwork)
  const { snapshot } = options
  const worlds = new Worlds(make, data, snapshot === undefined ? data : readSnapshot(serviceV2, snapshot))
  if (snapshot !== undefined) worlds.save(worlds.main, loadedName)
  const origin = (options.baseUrl ?? "http://127.0.0.1").replace(new RegExp(`${basePath}$`), "")
  let addresses: Addresses = { api: () => origin, control: () => ({ api: origin, control: origin }) }

  const draw = (request: Request) => {
    const { name, url } = splitWorld(request.url)
    return worlds.find(name)?.faults.draw(request.method, below(url).path ?? url) ?? null
  }
  const answer = (request: Request, fault: Fault | null) => {
    const { name, url } = splitWorld(request.url)
    const world = worlds.find(name)
    if (world === undefined) return noWorld(worlds.main, name)
    return answerUnder(world, `${addresses.api(request)}${pathOf(name)}${basePath}`, { ...request, url }, fault)
  }

  const controlCall = (request: Request) =>
    control(
      worlds,
      (name) => {
        const { api, control: plane } = addresses.control(request)
        return { baseUrl: `${api}${pathOf(name)}${basePath}`, controlUrl: `${plane}${pathOf(name)}` }
      },
      request
    )
  const page = pages({
    worlds,
    control: controlCall,
    hasControlToken: options.hasControlToken === true,
    formToken: options.formToken ?? null
  })

  return {
    world: worlds.main,
    worlds,
    draw,
    answer,
    hold: (request) => {
      const { name, url } = splitWorld(request.url)
      const world = worlds.find(name)
      return world === undefined ? () => {} : holdKey(world, { ...request, url })
    },
    handle: (request) => {
      const fault = draw(request)
      const answered = answer(request, fault)
      return fault?.kind === "delay" ? { ...answered, wire: { kind: "delay", ms: fault.ms, bytes: null } } : answered
    },
    control: (request) => page(request) ?? controlCall(request),
    tick: () => worlds.tick(),
    close: () => worlds.close(),
    setAddresses: (given) => {
      addresses = given
    }
  }
}
