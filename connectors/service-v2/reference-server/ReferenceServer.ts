/**
 * The reference server: the API on one port, its control plane on another, both on loopback by default.
 *
 * Promise: when {@link start} returns, both ports accept requests. When its scope closes, both ports and all
 * connections are closed, then the snapshot is saved where the options say so. A start that fails leaves nothing open.
 */
import { accessSync, constants, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname } from "node:path"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import type * as Scope from "effect/Scope"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { jsonAnswer } from "./control/Route.ts"
import { core } from "./Core.ts"
import type { Core } from "./Core.ts"
import { httpsNetwork } from "./events/httpsNetwork.ts"
import {
  addressOf,
  bareHost,
  controlGuard,
  isWildcard,
  localAddress,
  loopback,
  networkProblem,
  readiness
} from "./http/access.ts"
import type { NetworkOptions } from "./http/access.ts"
import { readCertificate, selfSigned } from "./http/certificate.ts"
import { listener } from "./http/listener.ts"
import { basePath, bodyBytesMax } from "./http/serve.ts"
import { runScenario } from "./scenarios/index.ts"
import type { DataKind } from "./seed/seed.ts"
import { printSnapshot } from "./snapshot/print.ts"

export interface ReferenceServerOptions extends NetworkOptions {
  /** 0 selects a free port. */
  readonly port: number
  readonly controlPort: number
  readonly data: DataKind
  /** Invoice lines of `scale`; default 200,000. */
  readonly rows?: number | undefined
  /** Seed of all random values; default 1. */
  readonly seed?: number | undefined
  /** A snapshot file with which the server starts; `data` is then only what a reset makes. */
  readonly load?: string | undefined
  /** The file to which the state of the main world is saved when the scope closes, readable by its owner only. */
  readonly saveOnExit?: string | undefined
  /** A scenario that runs before the start returns. */
  readonly scenario?: string | undefined
}

/** The server cannot start. */
export class ReferenceServerError extends Data.TaggedError("ReferenceServerError")<{
  /** The port on which it cannot listen; null for another reason. */
  readonly port: number | null
  readonly detail: string
}> {
  override get message(): string {
    return this.port === null
      ? `the reference server does not start: ${this.detail}`
      : `the reference server cannot listen on port ${this.port} (${this.detail}): choose another port, or 0 for a free one`
  }
}

/** The work, which fails with its reason. */
const attempt = <A>(what: string, work: () => A | Promise<A>): Effect.Effect<A, ReferenceServerError> =>
  Effect.tryPromise({
    try: async () => work(),
    catch: (error) =>
      new ReferenceServerError({
        port: null,
        detail: `${what}${error instanceof Error ? error.message : String(error)}`
      })
  })

export interface RunningServer {
  readonly baseUrl: string
  readonly controlUrl: string
  /** The certificate that clients trust, in PEM; null unless the server made its own. */
  readonly certificate: string | null
}

/** Interval at which the server checks whether a delivery cycle is due. */
const tickEvery = Duration.seconds(1)

const formTokenBytes = 24

/** Maximum body of a control call, which may insert many records. */
const controlBodyBytesMax = 256 * 1024 * 1024

const listen = (server: Server, host: string, port: number): Effect.Effect<number, ReferenceServerError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<number, ReferenceServerError>((resume) => {
      server.once("error", (error) => {
        const { code } = error as NodeJS.ErrnoException
        const isAddress = code === "ENOTFOUND" || code === "EADDRNOTAVAIL"
        const problem = isAddress
          ? { port: null, detail: `${host} is no address of this machine (${code})` }
          : { port, detail: code ?? error.message }
        resume(Effect.fail(new ReferenceServerError(problem)))
      })
      server.listen(port, bareHost(host), () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

const certificateOf = Effect.fnUntraced(function* ({ tls, host, controlHost, advertiseUrl }: ReferenceServerOptions) {
  if (tls === undefined) return null
  if (tls !== "self-signed") return yield* attempt("TLS: ", () => readCertificate(tls.cert!, tls.key!))
  const advertised = advertiseUrl === undefined ? [] : [new URL(advertiseUrl).hostname]
  return yield* attempt("TLS: ", () => selfSigned([host ?? loopback, controlHost ?? loopback, ...advertised]))
})

/** Writes the state in one step: a crash leaves the file as it was. */
const save = ({ world }: Core, file: string) => {
  const part = `${file}.part`
  // A part of an earlier process may belong to another owner, or lead elsewhere.
  rmSync(part, { force: true })
  try {
    writeFileSync(part, "", { mode: 0o600, flag: "wx" })
    for (const chunk of printSnapshot(world.state())) writeFileSync(part, chunk, { flag: "a" })
    renameSync(part, file)
  } finally {
    rmSync(part, { force: true })
  }
}

/** Saves at the end of the scope. A failure is reported and sets the exit code. */
const saveAtEnd = Effect.fnUntraced(function* (served: Core, file: string | undefined) {
  if (file === undefined) return
  yield* attempt("the snapshot cannot be saved: ", () => {
    accessSync(dirname(file), constants.W_OK)
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error(`${file} is a directory`)
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      try {
        save(served, file)
      } catch (error) {
        process.exitCode = 1
        process.stderr.write(`reference server: the snapshot was not saved: ${String(error)}\n`)
      }
    })
  )
})

/** The listener of the API and that of the control plane, which is guarded. */
const listenersOf = (
  served: Core,
  options: ReferenceServerOptions,
  certificate: Parameters<typeof listener>[2],
  sleep: (ms: number) => Promise<void>,
  onDefect: (error: unknown) => void
) => {
  const guard = controlGuard(options.controlToken)
  const { draw, answer, hold } = served
  const api = listener(
    {
      bodyBytesMax,
      draw: (request) => (readiness(request) === null ? draw(request) : null),
      answer: (request, fault) => readiness(request) ?? answer(request, fault),
      hold,
      sleep
    },
    onDefect,
    certificate
  )
  const plane = listener(
    {
      bodyBytesMax: controlBodyBytesMax,
      refuse: (request) => readiness(request) ?? guard(request),
      draw: () => null,
      answer: (request) =>
        (request.body?.length ?? 0) > controlBodyBytesMax
          ? jsonAnswer({ error: `the body is longer than ${controlBodyBytesMax} bytes` }, 413)
          : served.control(request),
      hold: () => () => {},
      sleep
    },
    onDefect,
    certificate
  )
  return { api, plane }
}

export const start: (
  options: ReferenceServerOptions
) => Effect.Effect<RunningServer, ReferenceServerError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  const problem = networkProblem(options)
  if (problem !== null) return yield* new ReferenceServerError({ port: null, detail: problem })
  const clock = yield* Clock.Clock
  const services = yield* Effect.context()
  const sleep = (ms: number, signal?: AbortSignal) =>
    Effect.runPromiseWith(services)(Effect.sleep(Duration.millis(ms)), signal === undefined ? {} : { signal })
  const { data, rows, seed, host = loopback, controlHost = loopback, load, scenario } = options
  const onDefect = (error: unknown) => {
    process.stderr.write(
      `reference server: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`
    )
  }
  const certificate = yield* certificateOf(options)
  const random = yield* SecureRandom.SecureRandom
  const formToken = Encoding.encode(yield* random.randomBytes(formTokenBytes))
  const served = yield* attempt(load === undefined ? "" : `${load}: `, () =>
    core({
      formToken,
      hasControlToken: options.controlToken !== undefined,
      now: () => Number(clock.currentTimeNanosUnsafe() / 1000n),
      network: httpsNetwork({ now: () => Number(clock.currentTimeNanosUnsafe()) / 1e6, sleep }),
      onDefect,
      data,
      ...(load === undefined ? {} : { snapshot: readFileSync(load, "utf8") }),
      ...(rows === undefined ? {} : { rows }),
      ...(seed === undefined ? {} : { seed })
    })
  )
  if (scenario !== undefined) yield* attempt("", () => runScenario(served.world, scenario, {}))
  yield* Effect.addFinalizer(() => Effect.sync(() => served.close()))
  yield* saveAtEnd(served, options.saveOnExit)
  const { api, plane } = listenersOf(served, options, certificate, sleep, onDefect)
  const apiPort = yield* listen(api, host, options.port)
  const planePort = yield* listen(plane, controlHost, options.controlPort)
  const scheme = certificate === null ? "http" : "https"
  const advertised = options.advertiseUrl?.replace(/\/+$/, "")
  const apiUrl = advertised ?? localAddress(scheme, host, apiPort)
  const controlUrl = localAddress(scheme, controlHost, planePort)
  // On every interface, the address that a client used is the one that it can reach.
  const isAnyAddress = advertised === undefined && isWildcard(host)
  served.setAddresses({
    api: (request) => (isAnyAddress ? addressOf(request, scheme, apiUrl) : apiUrl),
    control: (request) => ({ api: apiUrl, control: addressOf(request, scheme, controlUrl) })
  })
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(tickEvery),
        Effect.promise(() => served.tick().catch(onDefect))
      )
    )
  )
  return {
    baseUrl: `${apiUrl}${basePath}`,
    controlUrl,
    certificate: options.tls === "self-signed" ? (certificate?.cert ?? null) : null
  }
}, Effect.provide(SecureRandom.layerWebCrypto))
