/**
 * A page of the dashboard: `load` reads a model from the warehouse, and `view` makes HTML of it.
 *
 * Promise: a view is a pure function of its model. It reads neither the warehouse nor a clock.
 *
 * `html` of hono escapes every value. Path, query and form are untrusted, and each page decodes its own.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Datasets } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ShownCompany } from "../status/Resources.ts"
import type { Html } from "../web/Html.ts"

export { html, type Html } from "../web/Html.ts"

export type { ShownCompany } from "../status/Resources.ts"

/** The token of forms, or the reason why none are shown. */
export type FormAccess =
  | { readonly _tag: "Acting"; readonly formToken: string }
  | { readonly _tag: "Reading"; readonly reason: string }

/** The requester that the warehouse stores with a request of a page. */
export const requester = "the page"

export interface PageRequest {
  /** Parameters of the path, decoded. */
  readonly path: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Fields of a form, whose token was checked; empty for GET. */
  readonly form: URLSearchParams
  /** By the warehouse's clock. */
  readonly now: Date
  readonly companies: ReadonlyArray<ShownCompany>
  readonly datasets: Datasets
  /** The reader's time zone, whose days are those of a choice; `UTC` until a browser reports one. */
  readonly zone: string
  readonly formAccess: FormAccess
  /** Starts work that may outlive the request; it ends with the service at the latest. */
  readonly background: (effect: Effect.Effect<unknown, never, Database | SqlClient.SqlClient>) => Effect.Effect<void>
}

export type PageStatus = 200 | 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 500 | 503

/** The place of a page: its name, and the address of the page above; null for an entry of the menu. */
export interface Level {
  readonly text: string
  readonly above: string | null
}

/** A page, whose main part the browser refreshes. */
export interface Page {
  readonly _tag: "Page"
  readonly title: string
  readonly body: Html
  /** Default 200. */
  readonly status?: PageStatus
  /** The current entry of the menu. */
  readonly section: Section | null
  /** False for forms, which must not change while a person fills them in. Default true. */
  readonly isLive?: boolean
  /** The place of the page where its address does not state it. */
  readonly level?: Level
  /** By the warehouse's clock; absent where the warehouse did not answer. */
  readonly now?: Date
  /** The numbers of the menu by section; absent where they were not read. */
  readonly numbers?: Readonly<Record<string, number>>
}

/** The page after an action, with a notice that it shows once. */
export interface Redirect {
  readonly _tag: "Redirect"
  readonly to: string
  readonly notice: string | null
}

export type Section =
  | "overview"
  | "resources"
  | "runs"
  | "budget"
  | "webhooks"
  | "outbox"
  | "endpoints"
  | "quarantine"
  | "invariants"
  | "records"
  | "processes"

export type Answer = Page | Redirect

/** An error page with this message and status: the thing does not exist, or the request is invalid. */
export class PageError extends Data.TaggedError("PageError")<{
  readonly status: 400 | 404 | 409
  readonly message: string
  /** The page above the error page, where the address does not state it. */
  readonly above?: string
}> {}

export type PageEffect<A> = Effect.Effect<A, PageError | DatabaseError, Database | SqlClient.SqlClient>

export interface Route {
  readonly method: "GET" | "POST"
  /** A pattern of hono: `/runs/:id`. */
  readonly path: string
  /**
   * Whether the page sends requests to the source, which the warehouse records. Any other page is one read-only
   * transaction.
   */
  readonly asksSource?: boolean
  readonly handle: (request: PageRequest) => PageEffect<Answer>
}

/** A page as two functions. */
export interface PageParts<Model> extends Pick<Route, "path" | "asksSource"> {
  readonly load: (request: PageRequest) => PageEffect<Model>
  readonly view: (model: Model) => Answer
}

export const pageRoute = <Model>({ load, view, ...route }: PageParts<Model>): Route => ({
  ...route,
  method: "GET",
  handle: (request) => Effect.map(load(request), view)
})

export const page = (parts: Omit<Page, "_tag" | "now" | "numbers">): Page => ({ _tag: "Page", ...parts })
export const redirect = (to: string, notice: string | null = null): Redirect => ({ _tag: "Redirect", to, notice })
