/**
 * The endpoint of assistants on the dashboard's address: the Model Context Protocol.
 *
 * Promise: access is that of a page that only reads: `Authorization: Bearer` with a token, or without a password
 * this machine alone, by its own names. A request of a web page is refused, since it has an Origin. The tools only read, so
 * that a POST needs no more.
 */
import type { Hono } from "hono"
import type { AccessDecision } from "./AccessDecision.ts"
import { accessRequestOf, type Bindings, bodyBytesMax, type Exchange, type PageServer, readBody } from "./PageServer.ts"

export const path = "/mcp"

const refuse = (exchange: Exchange, decision: Exclude<AccessDecision, { readonly _tag: "Granted" }>): Response => {
  switch (decision._tag) {
    case "Away":
      return exchange.text("The warehouse does not answer. Try again in a moment.\n", 503, { "Retry-After": "5" })
    case "LogIn":
      return exchange.text(
        "Send Authorization: Bearer and a token: tributary serve tokens add NAME makes one.\n",
        401,
        {
          "WWW-Authenticate": "Bearer"
        }
      )
    case "Refused":
      return exchange.text(`${decision.message}\n`, decision.status, {
        ...(decision.retryAfterSeconds === undefined ? {} : { "Retry-After": String(decision.retryAfterSeconds) }),
        ...(decision.status === 401 ? { "WWW-Authenticate": "Bearer" } : {})
      })
  }
}

const handle = async (
  { access, run }: PageServer,
  assistant: NonNullable<PageServer["assistant"]>,
  exchange: Exchange
): Promise<Response> => {
  const { headers, method, signal, url } = exchange.req.raw
  // A GET is a request that only reads.
  const decision = await run(access.decide({ ...accessRequestOf(exchange), method: "GET" }), signal)
  if (decision._tag !== "Granted") return refuse(exchange, decision)
  if (method === "GET" || method === "HEAD") return assistant(new Request(url, { method, headers }))
  const body = await readBody(exchange.req.raw)
  if (body === null) return exchange.text(`A request has at most ${bodyBytesMax / 1024} KB.\n`, 413)
  return assistant(new Request(url, { method, headers, body }))
}

export const add = (app: Hono<Bindings>, server: PageServer): void => {
  const { assistant } = server
  if (assistant !== null) app.all(path, (exchange) => handle(server, assistant, exchange))
}
