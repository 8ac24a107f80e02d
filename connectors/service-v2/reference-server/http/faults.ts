/**
 * Faults that the control plane requests.
 *
 * Promise: which request a fault hits depends only on the rules, the seed and the order of requests. `status`, `html`
 * and `garbage` answer instead of the service: the work is not done. `reset` closes the connection before the work,
 * `delay` waits before it. `dropResponse`, `truncate` and `slowBody` do the work and damage the answer.
 *
 * | rule member | meaning |
 * |---|---|
 * | `kind` | one of the kinds above |
 * | `method` | only this method |
 * | `path` | a prefix of the path below the base address (`/orders`), or a glob with `*` |
 * | `after` | skips this many matching requests first |
 * | `times` | maximum number of uses; default unlimited |
 * | `rate` | fires with this probability, 0 to 1 |
 * | `status`, `code`, `headers`, `body` | of `status` and `html`; `body` is text or JSON |
 * | `ms` | of `delay`; of `slowBody` the time between two pieces |
 * | `bytes` | of `truncate`, the bytes sent; of `slowBody`, the bytes of a piece |
 */
import { isObject, print } from "../json.ts"
import { random } from "../random.ts"
import type { Random } from "../random.ts"

export type FaultKind = "status" | "reset" | "delay" | "truncate" | "dropResponse" | "html" | "garbage" | "slowBody"

/** The fault of an answer, or of its request, on the wire. */
export interface WireFault {
  readonly kind: "reset" | "delay" | "truncate" | "dropResponse" | "slowBody"
  readonly ms: number
  readonly bytes: number | null
}

export interface Fault {
  readonly kind: FaultKind
  readonly method: string | null
  readonly path: RegExp | null
  readonly after: number
  readonly times: number | null
  readonly rate: number
  readonly status: number | null
  readonly code: string | null
  readonly headers: Readonly<Record<string, string>> | null
  readonly body: string | null
  readonly ms: number
  readonly bytes: number | null
}

const kinds: ReadonlyArray<string> = [
  "status",
  "reset",
  "delay",
  "truncate",
  "dropResponse",
  "html",
  "garbage",
  "slowBody"
]
const members = ["kind", "method", "path", "after", "times", "rate", "status", "code", "headers", "body", "ms", "bytes"]

const globOf = (path: string): RegExp => {
  const escaped = (path.startsWith("/") ? path : `/${path}`)
    .split("*")
    .map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"))
    .join(".*")
  return new RegExp(`^${escaped}${path.includes("*") ? "$" : ""}`)
}

/** Reads a rule; returns a message when it is invalid. */
export const readFault = (input: unknown): Fault | string => {
  if (!isObject(input)) return "a rule must be an object"
  const unknown = Object.keys(input).find((name) => !members.includes(name))
  if (unknown !== undefined) return `a rule has no member "${unknown}"; it has: ${members.join(", ")}`
  const { kind, method, path, rate, headers, body, code } = input
  if (typeof kind !== "string" || !kinds.includes(kind)) return `kind must be one of ${kinds.join(", ")}`
  if (method !== undefined && typeof method !== "string") return "method must be a string"
  if (path !== undefined && typeof path !== "string") return "path must be a string"
  if (rate !== undefined && (Number.isNaN(Number(print(rate))) || Number(print(rate)) < 0 || Number(print(rate)) > 1)) {
    return "rate must be from 0 to 1"
  }
  for (const name of ["after", "times", "status", "ms", "bytes"]) {
    const value = input[name]
    if (value !== undefined && !(Number.isSafeInteger(value) && Number(value) >= 0))
      return `${name} must be a whole number`
  }
  const status = typeof code === "number" ? code : (input["status"] as number | undefined)
  if (status !== undefined && (status < 200 || status > 599)) return "status must be from 200 to 599"
  if (headers !== undefined && !(isObject(headers) && Object.values(headers).every((v) => typeof v === "string"))) {
    return "headers must be an object of strings"
  }
  return {
    kind: kind as FaultKind,
    method: method?.toUpperCase() ?? null,
    path: path === undefined ? null : globOf(path),
    after: (input["after"] as number | undefined) ?? 0,
    times: (input["times"] as number | undefined) ?? null,
    rate: rate === undefined ? 1 : Number(print(rate)),
    status: status ?? null,
    code: typeof code === "string" ? code : null,
    headers: (headers as Record<string, string> | undefined) ?? null,
    body: body === undefined ? null : typeof body === "string" ? body : print(body),
    ms: (input["ms"] as number | undefined) ?? (kind === "delay" ? 1000 : 50),
    bytes: (input["bytes"] as number | undefined) ?? null
  }
}

interface Armed {
  readonly fault: Fault
  seen: number
  fired: number
}

export interface FaultsState {
  readonly armed: ReadonlyArray<Readonly<Armed>>
  /** The seed of the rest of the random numbers. */
  readonly random: number
}

export class Faults {
  private armed: ReadonlyArray<Armed>
  private random: Random

  constructor({ armed, random: seed }: FaultsState = { armed: [], random: 1 }) {
    this.armed = armed.map((rule) => ({ ...rule }))
    this.random = random(seed)
  }

  state(): FaultsState {
    return { armed: this.armed.map((rule) => ({ ...rule })), random: this.random.state() }
  }

  arm(faults: ReadonlyArray<Fault>, random: Random): void {
    this.armed = faults.map((fault) => ({ fault, seen: 0, fired: 0 }))
    this.random = random
  }

  clear(): void {
    this.armed = []
  }

  /** The first rule that fires for a request. */
  draw(method: string, path: string): Fault | null {
    for (const rule of this.armed) {
      const { fault } = rule
      if (fault.method !== null && fault.method !== method) continue
      if (fault.path !== null && !fault.path.test(path)) continue
      rule.seen++
      if (rule.seen <= fault.after || (fault.times !== null && rule.fired >= fault.times)) continue
      if (fault.rate < 1 && !this.random.chance(fault.rate)) continue
      rule.fired++
      return fault
    }
    return null
  }
}
