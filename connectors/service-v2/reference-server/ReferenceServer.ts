/**
 * The reference server: the API on one loopback port, its control plane on another.
 *
 * Promise: when {@link start} returns, both ports accept requests. When its scope closes, both ports and all
 * connections are closed.
 */
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { core } from "./Core.ts"
import { httpsNetwork } from "./events/httpsNetwork.ts"
import { listener } from "./http/listener.ts"
import { basePath, bodyBytesMax } from "./http/serve.ts"
import type { DataKind } from "./seed/seed.ts"

export interface ReferenceServerOptions {
  /** 0 selects a free port. */
  readonly port: number
  readonly controlPort: number
  readonly data: DataKind
  /** Invoice lines of `scale`; default 200,000. */
  readonly rows?: number | undefined
  /** Seed of all random values; default 1. */
  readonly seed?: number | undefined
}

/** The server cannot start. */
export class ReferenceServerError extends Data.TaggedError("ReferenceServerError")<{
  readonly port: number
  readonly detail: string
}> {
  override get message(): string {
    return `the reference server cannot listen on port ${this.port} (${this.detail}): choose another port, or 0 for a free one`
  }
}

export interface RunningServer {
  readonly baseUrl: string
  readonly controlUrl: string
}

/** Interval at which the server checks whether a delivery cycle is due. */
const tickEvery = Duration.seconds(1)

/** Maximum body of a control call, which may insert many records. */
const controlBodyBytesMax = 256 * 1024 * 1024

const listen = (server: Server, port: number): Effect.Effect<number, ReferenceServerError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<number, ReferenceServerError>((resume) => {
      server.once("error", (error) =>
        resume(
          Effect.fail(
            new ReferenceServerError({ port, detail: (error as NodeJS.ErrnoException).code ?? error.message })
          )
        )
      )
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

export const start: (
  options: ReferenceServerOptions
) => Effect.Effect<RunningServer, ReferenceServerError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context()
  const sleep = (ms: number, signal?: AbortSignal) =>
    Effect.runPromiseWith(services)(Effect.sleep(Duration.millis(ms)), signal === undefined ? {} : { signal })
  const { data, rows, seed, port, controlPort } = options
  const onDefect = (error: unknown) => {
    process.stderr.write(
      `reference server: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`
    )
  }
  const served = core({
    now: () => Number(clock.currentTimeNanosUnsafe() / 1000n),
    network: httpsNetwork({ now: () => Number(clock.currentTimeNanosUnsafe()) / 1e6, sleep }),
    onDefect,
    data,
    ...(rows === undefined ? {} : { rows }),
    ...(seed === undefined ? {} : { seed })
  })
  const api = listener({ bodyBytesMax, draw: served.draw, answer: served.answer, hold: served.hold, sleep }, onDefect)
  const plane = listener(
    { bodyBytesMax: controlBodyBytesMax, draw: () => null, answer: served.control, hold: () => () => {}, sleep },
    onDefect
  )
  const apiPort = yield* listen(api, port)
  const planePort = yield* listen(plane, controlPort)
  const baseUrl = `http://127.0.0.1:${apiPort}${basePath}`
  served.setAddresses({ api: () => `http://127.0.0.1:${apiPort}`, control: () => `http://127.0.0.1:${planePort}` })
  yield* Effect.addFinalizer(() => Effect.sync(() => served.close()))
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(tickEvery),
        Effect.promise(() => served.tick().catch(onDefect))
      )
    )
  )
  return { baseUrl, controlUrl: `http://127.0.0.1:${planePort}` }
})
