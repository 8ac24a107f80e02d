/** The HTTP endpoint of assistants as a function of requests, for the dashboard's listener. */
import type * as Clock from "effect/Clock"
import * as Layer from "effect/Layer"
import * as HttpRouter from "effect/http/HttpRouter"
import type { Capabilities } from "./Capabilities.ts"
import * as HttpSessions from "./HttpSessions.ts"
import * as Server from "./Server.ts"

/** The endpoint, until it is disposed of. */
export const serve = (capabilities: Layer.Layer<Capabilities>, clock: Clock.Clock) => {
  const { dispose, handler } = HttpRouter.toWebHandler(Server.http.pipe(Layer.provideMerge(capabilities)), {
    disableLogger: true
  })
  return { dispose, handler: HttpSessions.bound((request) => handler(request), clock) }
}
