/**
 * What a page of the dashboard is: an Effect that answers HTML, from what the warehouse says at that moment.
 *
 * Every value that is shown goes through `html` of hono, which escapes it. Nothing here is trusted: the path, the query and
 * the form come from outside and are decoded by each page.
 */
import type { html } from "hono/html"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Datasets } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ShownCompany } from "../status/Resources.ts"

export { html, raw } from "hono/html"

export type { ShownCompany } from "../status/Resources.ts"

export type Html = ReturnType<typeof html>

/** Whether forms are shown: their hidden field, which proves that they are ours, or why there are none. */
export type FormAccess =
  | { readonly _tag: "Acting"; readonly formToken: string }
  | { readonly _tag: "Reading"; readonly reason: string }

/** What somebody asked for. */
export interface PageRequest {
  /** Parameters of the path, decoded. */
  readonly path: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Fields of a form; empty for GET. Proven to come from a page of ours. */
  readonly form: URLSearchParams
  /** By the warehouse's clock. */
  readonly now: Date
  readonly companies: ReadonlyArray<ShownCompany>
  readonly datasets: Datasets
  readonly formAccess: FormAccess
  /** Who asks, for what is written down: `the page`. */
  readonly by: string
  /** Begins something that may take longer than a request; it goes on until it is done or the service stops. */
  readonly background: (effect: Effect.Effect<unknown, never, Database | SqlClient.SqlClient>) => Effect.Effect<void>
}

export type PageStatus = 200 | 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 500 | 503

/** A whole page; its main part is asked for again every two seconds and morphed into place. */
export interface Page {
  readonly _tag: "Page"
  readonly title: string
  readonly body: Html
  /** Default 200. */
  readonly status?: PageStatus
  /** The menu's entry that is current. */
  readonly section: Section | null
  /** False for forms, which must not change under the hands of who fills them. Default true. */
  readonly isLive?: boolean
}

/** After something was done: where to go on, and what to say there once. */
export interface Redirect {
  readonly _tag: "Redirect"
  readonly to: string
  readonly notice: string | null
}

export type Section = "overview" | "runs" | "budget" | "webhooks" | "outbox" | "quarantine" | "records"

export type Answer = Page | Redirect

/** There is no such thing, or what came makes no sense: a page with this sentence and status. */
export class PageError extends Data.TaggedError("PageError")<{
  readonly status: 400 | 404 | 409
  readonly message: string
}> {}

export interface Route {
  readonly method: "GET" | "POST"
  /** As hono writes it: `/runs/:id`. */
  readonly path: string
  /**
   * Whether a page asks the source, which is written down in the warehouse as every request is. Any other page is one
   * read-only transaction.
   */
  readonly asksSource?: boolean
  readonly handle: (
    request: PageRequest
  ) => Effect.Effect<Answer, PageError | SqlError | DatabaseError, Database | SqlClient.SqlClient>
}

export const page = (parts: Omit<Page, "_tag">): Page => ({ _tag: "Page", ...parts })
export const redirect = (to: string, notice: string | null = null): Redirect => ({ _tag: "Redirect", to, notice })
