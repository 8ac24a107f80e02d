/** The HTTP endpoint of assistants as a function of requests, for the dashboard's listener. */
import * as Layer from "effect/Layer"
import * as HttpRouter from "effect/http/HttpRouter"
import type { Capabilities } from "./Capabilities.ts"
import * as Server from "./Server.ts"

/** The endpoint, until it is disposed of. */
export const serve = (capabilities: Layer.Layer<Capabilities>) =>
  HttpRouter.toWebHandler(Server.http.pipe(Layer.provideMerge(capabilities)), { disableLogger: true })
