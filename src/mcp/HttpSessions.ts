/**
 * The sessions of assistants over HTTP: bounded in number and in idle time.
 *
 * Promise: a session that sent no request for {@link idleMsMax} ends, and of more than {@link sessionsMax} the one whose
 * last request is the oldest. A request of an ended session is answered with 404, on which a client begins a new one.
 */
import type * as Clock from "effect/Clock"

export const sessionsMax = 100
export const idleMsMax = 3_600_000

const sessionHeader = "mcp-session-id"

type Handler = (request: Request) => Promise<Response>

/** The handler with bounded sessions. */
export const bound = (handler: Handler, clock: Clock.Clock): Handler => {
  /** The time of the last request of each session, the oldest first. */
  const lastMs = new Map<string, number>()

  const use = (id: string) => {
    lastMs.delete(id)
    lastMs.set(id, clock.currentTimeMillisUnsafe())
  }

  const end = async (id: string, url: string) => {
    lastMs.delete(id)
    await handler(new Request(url, { method: "DELETE", headers: { [sessionHeader]: id } }))
  }

  const endOld = async (url: string) => {
    const nowMs = clock.currentTimeMillisUnsafe()
    const old = [...lastMs].filter(([, ms], at) => ms + idleMsMax <= nowMs || at < lastMs.size - sessionsMax)
    for (const [id] of old) await end(id, url)
  }

  return async (request) => {
    const { method, url } = request
    await endOld(url)
    const id = request.headers.get(sessionHeader)
    if (id !== null && lastMs.has(id)) use(id)
    const response = await handler(request)
    const given = response.headers.get(sessionHeader)
    if (method === "DELETE" && id !== null) lastMs.delete(id)
    else if (given !== null) {
      use(given)
      await endOld(url)
    }
    return response
  }
}
