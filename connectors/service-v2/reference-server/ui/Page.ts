/**
 * A page of the reference server, and an action of its forms.
 *
 * A page reads the server's memory. An action does nothing itself: it sends a call to the control plane, so that a person
 * and a program do the same. Path, query and form are untrusted, and each page decodes its own.
 */
import type { Html } from "../../../../src/web/Html.ts"
import type { World } from "../World.ts"
import type { Worlds } from "../worlds/Worlds.ts"

export type Section =
  | "requests"
  | "records"
  | "tokens"
  | "subscriptions"
  | "deliveries"
  | "clock"
  | "faults"
  | "settings"
  | "scenarios"
  | "facts"

/** The answer of a control call. */
export interface ControlReply {
  readonly status: number
  /** The parsed body. */
  readonly body: unknown
}

export interface PageRequest {
  /** The world that the pages show. */
  readonly world: World
  /** Its name; null for the main one. */
  readonly worldName: string | null
  readonly worlds: Worlds
  /** The time of the server's clock. */
  readonly now: Date
  /** Parameters of the path, decoded. */
  readonly path: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Fields of a form that was checked; empty for GET. */
  readonly form: URLSearchParams
  /** Protects forms; null where the server was started without one, and then there are none. */
  readonly formToken: string | null
  /** Sends a call to the control plane of the world. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<ControlReply>
}

export type PageStatus = 200 | 400 | 403 | 404 | 409 | 413 | 415 | 500

export interface Page {
  readonly _tag: "Page"
  readonly title: string
  readonly section: Section | null
  readonly body: Html
  /** Default 200. */
  readonly status?: PageStatus
  /** Whether the browser refreshes its main part. Default false. */
  readonly isLive?: boolean
}

/** The page after an action, with a sentence that it shows once. */
export interface Redirect {
  readonly _tag: "Redirect"
  readonly to: string
  readonly notice: string
}

export const page = (parts: Omit<Page, "_tag">): Page => ({ _tag: "Page", ...parts })
export const redirect = (to: string, notice: string): Redirect => ({ _tag: "Redirect", to, notice })

/** An error page with this status and sentence. */
export class PageError extends Error {
  override readonly name = "PageError"
  readonly status: 400 | 404 | 409
  constructor(status: 400 | 404 | 409, message: string) {
    super(message)
    this.status = status
  }
}

export interface Route {
  readonly method: "GET" | "POST"
  /** A pattern of hono, below {@link root}. */
  readonly path: string
  readonly handle: (request: PageRequest) => Page | Redirect | Promise<Page | Redirect>
}

/** The folder of all pages. The pages of a world link to their own: `Application.ts` prefixes its path. */
export const root = "/ui"

/** A parameter of the query; null when it is absent or empty. */
export const ofQuery = ({ query }: PageRequest, name: string): string | null => {
  const value = query.get(name)?.trim() ?? ""
  return value === "" ? null : value
}

/** A field of the form; null when it is absent or empty. */
export const ofForm = ({ form }: PageRequest, name: string): string | null => {
  const value = form.get(name)?.trim() ?? ""
  return value === "" ? null : value
}

/** A whole number from 1; null when the text is absent. */
export const numberOf = (text: string | null, what: string): number | null => {
  if (text === null) return null
  const number = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (number < 1) throw new PageError(400, `${what} is a whole number from 1.`)
  return number
}
