/**
 * The control plane: what a test or an operator may do to the server beside the API (DESIGN 5.3).
 *
 * Promise: an invalid call answers 400 with a message and changes nothing. Records are stored verbatim: the API returns
 * values, number tokens, unknown fields and odd strings exactly as they were sent.
 */
import { Buffer } from "node:buffer"
import { runCycle, printDeliveries, trust } from "../events/control.ts"
import { changeDialect } from "../http/dialect.ts"
import { readFault } from "../http/faults.ts"
import type { Fault } from "../http/faults.ts"
import type { Answer, Request } from "../http/Message.ts"
import { json } from "../http/Message.ts"
import { isObject, parseExactly, print } from "../json.ts"
import { random } from "../random.ts"
import { microsPerSecond, printInstant, readDay, readInstant } from "../time.ts"
import type { Limits } from "../Limits.ts"
import type { SeedOptions } from "../seed/seed.ts"
import type { World } from "../World.ts"
import { ensureCompany } from "../seed/install.ts"
import { ControlError, flag, only, tableOf, wholeNumber } from "./given.ts"
import type { CallInput } from "./given.ts"
import { putRecords } from "./records.ts"
import { issueToken, revokeToken } from "./tokens.ts"
import { readHistory, readState } from "./truth.ts"

const answer = (status: number, body: string, type = json): Answer => ({
  status,
  headers: { "Content-Type": type },
  body,
  wire: null
})

const jsonAnswer = (value: unknown, status = 200): Answer => answer(status, JSON.stringify(value))

/** The input of a call: the body of a PUT or POST, the query of a GET. */
interface Call {
  readonly world: World
  /** The options of the server's start. */
  readonly started: SeedOptions
  readonly input: CallInput
  readonly query: URLSearchParams
  readonly path: ReadonlyArray<string>
}

const reset = ({ world, started, input }: Call): Answer => {
  only(input, ["data", "rows", "seed"])
  const data = input["data"] ?? started.data
  if (data !== "empty" && data !== "demo" && data !== "scale")
    throw new ControlError("data must be empty, demo or scale")
  const rows = wholeNumber(input, "rows", 1, started.rows)
  const seed = wholeNumber(input, "seed", 0, started.seed)
  world.reset({ data, rows, seed })
  return jsonAnswer({ data, rows, seed, now: printInstant(world.clock.now()), companies: world.store.companies() })
}

const readClock = ({ world }: Call): Answer =>
  jsonAnswer({ now: printInstant(world.clock.now()), manual: world.clock.isManual() })

/** An answer that waits for external work. */
const later = (world: World, work: Promise<Answer>): Answer => ({
  ...jsonAnswer({}),
  pending: work.catch((error: unknown) => failed(world, error))
})

/** Moves the clock; work that becomes due is done at its own time. */
const setClock = (call: Call): Answer => {
  const { world, input } = call
  only(input, ["now", "advanceSeconds", "manual"])
  const { now, advanceSeconds, manual } = input
  const instant = typeof now === "string" ? readInstant(now) : null
  if (now !== undefined && instant === null) throw new ControlError("now must be RFC 3339 in UTC")
  const seconds = advanceSeconds === undefined ? 0 : Number(print(advanceSeconds))
  if (!Number.isFinite(seconds)) throw new ControlError("advanceSeconds must be a number")
  if (manual !== undefined && typeof manual !== "boolean") throw new ControlError("manual must be true or false")
  if (manual !== undefined) world.clock.setManual(manual)
  if (instant !== null) {
    world.clock.set(instant)
    world.events.rebase()
  }
  const moving = seconds === 0 ? null : world.events.advance(Math.round(seconds * microsPerSecond))
  if (moving !== null)
    return later(
      world,
      moving.then(() => readClock(call))
    )
  return readClock(call)
}

const changeCompany = ({ world, input, path }: Call): Answer => {
  only(input, ["features", "recordLimits", "closedThrough"])
  const company = Number(path[1])
  if (!Number.isSafeInteger(company) || company < 1) throw new ControlError("a company is a whole number from 1")
  const { features, recordLimits, closedThrough } = input
  const before = world.settingsOf(company)
  const unlicensed = new Set(before.unlicensed)
  if (features !== undefined) {
    if (!isObject(features)) throw new ControlError("features must be an object of modules and true or false")
    for (const [name, licensed] of Object.entries(features)) {
      if (!world.store.catalogue.features.includes(name)) {
        throw new ControlError(`there is no module "${name}"; there are: ${world.store.catalogue.features.join(", ")}`)
      }
      if (typeof licensed !== "boolean") throw new ControlError(`the module ${name} takes true or false`)
      if (licensed) unlicensed.delete(name)
      else unlicensed.add(name)
    }
  }
  const limits = new Map(before.recordLimits)
  if (recordLimits !== undefined) {
    if (!isObject(recordLimits)) throw new ControlError("recordLimits must be an object of resources and numbers")
    for (const [path, limit] of Object.entries(recordLimits)) {
      if (world.store.catalogue.resources.get(path)?.capped !== true) throw new ControlError(`${path} is not capped`)
      if (limit === null) limits.delete(path)
      else limits.set(path, wholeNumber({ limit }, "limit", 0, 0))
    }
  }
  if (closedThrough !== undefined && closedThrough !== null) {
    if (typeof closedThrough !== "string" || readDay(closedThrough) === null) {
      throw new ControlError("closedThrough must be a day, YYYY-MM-DD, or null")
    }
  }
  ensureCompany(world, company)
  const settings = {
    unlicensed,
    recordLimits: limits,
    closedThrough: closedThrough === undefined ? before.closedThrough : closedThrough
  }
  world.changeSettings(company, settings)
  return jsonAnswer({
    company,
    features: Object.fromEntries(world.store.catalogue.features.map((name) => [name, !unlicensed.has(name)])),
    recordLimits: Object.fromEntries(limits),
    closedThrough: settings.closedThrough
  })
}

const changeLimits = ({ world, input }: Call): Answer => {
  only(input, Object.keys(world.limits))
  const { rateScope, requestsPerMinute } = input
  if (rateScope !== undefined && rateScope !== "token" && rateScope !== "user" && rateScope !== "install") {
    throw new ControlError("rateScope must be token, user or install")
  }
  const before = world.limits
  const after: Limits = {
    requestsPerMinute:
      requestsPerMinute === null ? null : wholeNumber(input, "requestsPerMinute", 0, before.requestsPerMinute ?? -1),
    rateScope: rateScope ?? before.rateScope,
    testCallsPerMinute: wholeNumber(input, "testCallsPerMinute", 0, before.testCallsPerMinute),
    failureThreshold: wholeNumber(input, "failureThreshold", 1, before.failureThreshold),
    attemptsPerEvent: wholeNumber(input, "attemptsPerEvent", 1, before.attemptsPerEvent),
    cycleSeconds: wholeNumber(input, "cycleSeconds", 1, before.cycleSeconds),
    rotationHours: wholeNumber(input, "rotationHours", 0, before.rotationHours),
    allowPrivateReceivers: flag(input, "allowPrivateReceivers", before.allowPrivateReceivers)
  }
  world.limits = after.requestsPerMinute === -1 ? { ...after, requestsPerMinute: null } : after
  if (after.cycleSeconds !== before.cycleSeconds) world.events.rebase()
  return jsonAnswer(world.limits)
}

const switchDialect = ({ world, input }: Call): Answer => {
  const changed = changeDialect(world.dialect, input)
  if (typeof changed === "string") throw new ControlError(changed)
  world.dialect = changed
  return jsonAnswer(changed)
}

const armFaults = ({ world, input }: Call): Answer => {
  only(input, ["rules", "seed"])
  if (!Array.isArray(input["rules"])) throw new ControlError("rules must be an array")
  const faults: Array<Fault> = []
  for (const [index, rule] of input["rules"].entries()) {
    const fault = readFault(rule)
    if (typeof fault === "string") throw new ControlError(`rules[${index}]: ${fault}`)
    faults.push(fault)
  }
  world.faults.arm(faults, random(wholeNumber(input, "seed", 0, 1)))
  return jsonAnswer({ rules: faults.length })
}

const clearFaults = ({ world }: Call): Answer => {
  world.faults.clear()
  return jsonAnswer({ rules: 0 })
}

const remove = ({ world, input }: Call): Answer => {
  only(input, ["company", "resource", "id"])
  const table = tableOf(world, input["company"], input["resource"])
  const id = wholeNumber(input, "id", 1, 0)
  if (table.get(id) === undefined)
    throw new ControlError(`company ${table.company} has no ${table.resource.path} ${id}`)
  world.store.transact(() => world.store.remove(table, id))
  return jsonAnswer({ removed: true })
}

const stream = (chunks: Iterable<string>, type = "application/x-ndjson"): Answer => ({
  ...answer(200, "", type),
  chunks
})

const trustCertificates = ({ world, input }: Call): Answer => {
  only(input, ["caPem"])
  const trusted = trust(world, input["caPem"])
  if (typeof trusted === "string") throw new ControlError(trusted)
  return jsonAnswer({ trusted })
}

const calls: Readonly<Record<string, (call: Call) => Answer>> = {
  "POST /reset": reset,
  "POST /tokens": ({ world, input }) => jsonAnswer(issueToken(world, input), 201),
  "POST /tokens/revoke": ({ world, input }) => jsonAnswer(revokeToken(world, input)),
  "GET /clock": readClock,
  "POST /clock": setClock,
  "PUT /companies/:id": changeCompany,
  "PUT /limits": changeLimits,
  "PUT /dialect": switchDialect,
  "POST /records": ({ world, input }) => answer(200, putRecords(world, input)),
  "POST /remove": remove,
  "POST /faults": armFaults,
  "DELETE /faults": clearFaults,
  "GET /history": ({ world, query }) => stream(readHistory(world, query)),
  "GET /state": ({ world, query }) => stream(readState(world, query)),
  "POST /cycle": ({ world }) =>
    later(
      world,
      runCycle(world).then((body) => answer(200, body))
    ),
  "GET /deliveries": ({ world }) => stream(printDeliveries(world), json),
  "POST /trust": trustCertificates,
  "GET /requests": ({ world }) => jsonAnswer({ requests: world.journal.all() })
}

const readInput = ({ method, body }: Request): CallInput => {
  if (method === "GET" || body === null || body.length === 0) return {}
  let parsed: unknown
  try {
    parsed = parseExactly(Buffer.from(body).toString("utf8"))
  } catch {
    throw new ControlError("the body is not valid JSON")
  }
  if (!isObject(parsed)) throw new ControlError("the body must be a JSON object")
  return parsed
}

const failed = (world: World, error: unknown): Answer => {
  if (error instanceof ControlError) return jsonAnswer({ error: error.message }, 400)
  world.onDefect(error)
  return jsonAnswer({ error: `the server failed: ${String(error)}` }, 500)
}

export const control = (world: World, started: SeedOptions, request: Request): Answer => {
  const question = request.url.indexOf("?")
  const pathText = question < 0 ? request.url : request.url.slice(0, question)
  const path = pathText.slice(1).split("/")
  const name = path[0] === "companies" && path.length === 2 ? "/companies/:id" : pathText
  const call = Object.hasOwn(calls, `${request.method} ${name}`) ? calls[`${request.method} ${name}`] : undefined
  // Otherwise a page in a browser could reach a loopback port.
  if (request.headers["origin"] !== undefined)
    return jsonAnswer({ error: "the control plane answers no web pages" }, 400)
  if (call === undefined) return jsonAnswer({ error: `the control plane has no ${request.method} ${pathText}` }, 404)
  try {
    const query = new URLSearchParams(question < 0 ? "" : request.url.slice(question + 1))
    // Changes by the control plane fire no events.
    return world.events.silently(() => call({ world, started, input: readInput(request), query, path }))
  } catch (error) {
    return failed(world, error)
  }
}
