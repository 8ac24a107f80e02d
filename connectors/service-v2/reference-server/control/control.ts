/**
 * The control plane: what a test or an operator may do to the server beside the API (DESIGN.md 5.3). `routes.ts` lists
 * its calls.
 *
 * Promise: an invalid call answers 400 with a message and changes nothing. Records are stored verbatim: the API returns
 * values, number tokens, unknown fields and odd strings exactly as they were sent.
 */
import { Buffer } from "node:buffer"
import type { Answer, Request } from "../http/Message.ts"
import { isObject, parseExactly } from "../json.ts"
import type { World } from "../World.ts"
import { splitWorld } from "../worlds/Worlds.ts"
import type { Worlds } from "../worlds/Worlds.ts"
import { ControlError } from "./Input.ts"
import { jsonAnswer } from "./Route.ts"
import type { ControlRoute, Urls } from "./Route.ts"
import { controlRoutes } from "./routes.ts"
import { worldRoutes } from "./routes/worlds.ts"

/** The body as NDJSON of a snapshot; null when it is something else. */
const readLines = ({ headers, body }: Request): string | null => {
  const text = Buffer.from(body ?? []).toString("utf8")
  return headers["content-type"]?.includes("ndjson") === true || /^\{\s*"format"/.test(text) ? text : null
}

const readBody = ({ method, body }: Request): unknown => {
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

/** The parameters of a path that fits the template; null when it does not. */
const matchPath = (template: string, path: string): Readonly<Record<string, string>> | null => {
  const parts = template.split("/")
  const texts = path.split("/")
  if (parts.length !== texts.length) return null
  const parameters: Record<string, string> = {}
  for (const [index, part] of parts.entries()) {
    if (part.startsWith("{")) parameters[part.slice(1, -1)] = texts[index]!
    else if (part !== texts[index]) return null
  }
  return parameters
}

const find = (
  method: string,
  path: string,
  routes: ReadonlyArray<ControlRoute>
): readonly [ControlRoute, Readonly<Record<string, string>>] | null => {
  for (const route of routes) {
    const parameters = route.method === method ? matchPath(route.path, path) : null
    if (parameters !== null) return [route, parameters]
  }
  return null
}

const routesOfWorld = controlRoutes.filter((route) => !worldRoutes.includes(route))

/** `urls` are the addresses by which the caller reaches the worlds. */
export const control = (worlds: Worlds, urls: Urls, request: Request): Answer => {
  // Otherwise a page in a browser could reach a loopback port.
  if (request.headers["origin"] !== undefined) {
    return jsonAnswer({ error: "the control plane answers no web pages" }, 400)
  }
  const { name, url } = splitWorld(request.url)
  const world = worlds.find(name)
  if (world === undefined)
    return jsonAnswer({ error: `there is no world ${String(name)}; POST /worlds makes one` }, 404)
  const question = url.indexOf("?")
  const path = question < 0 ? url : url.slice(0, question)
  const match = find(request.method, path, name === null ? controlRoutes : routesOfWorld)
  if (match === null) return jsonAnswer({ error: `the control plane has no ${request.method} ${path}` }, 404)
  const [route, pathParameters] = match
  try {
    const query = new URLSearchParams(question < 0 ? "" : url.slice(question + 1))
    const parameters = { ...Object.fromEntries(query), ...pathParameters }
    const lines = route.takesLines === true ? readLines(request) : null
    const body = lines === null ? readBody(request) : {}
    const { started } = worlds
    // Changes by the control plane fire no events.
    const answer = world.events.silently(() => route.answer({ world, worlds, urls, started, lines, body, parameters }))
    return answer.pending === undefined
      ? answer
      : { ...answer, pending: answer.pending.catch((error: unknown) => failed(world, error)) }
  } catch (error) {
    return failed(world, error)
  }
}
