/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The reference server for programs and tests in JavaScript: `tributary-sync/reference-server`.
 *
 * Promise: when {@link start} returns, the server answers on two loopback ports of its own. Servers of one process share
 * nothing. {@link ReferenceServer.close} ends both ports and every connection; the process can end then.
 *
 * This module needs no database and no other part of Tributary.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { ControlPlane } from "./control/ControlPlane.ts"
import type { ResetOptions } from "./control/ControlPlane.ts"
import * as Process from "./ReferenceServer.ts"
import { startClock } from "./startClock.ts"

export { ControlPlane, ControlPlaneError } from "./control/ControlPlane.ts"
export type {
  ClockState,
  CompanySettings,
  DeliveryAttempt,
  DialectOptions,
  FaultRule,
  HistoryEntry,
  LimitOptions,
  RecordVersions,
  RequestEntry,
  ResetOptions,
  ResourceName,
  TokenOptions,
  World,
  WorldOptions
} from "./control/ControlPlane.ts"

export interface StartOptions {
  /**
   * The records at the start: `empty` has those of every new install, `demo` a small business in company 1 and a second
   * one in company 2, `scale` as many invoice lines as `rows` says. Default `demo`.
   */
  readonly data?: "empty" | "demo" | "scale"
  /** Seed of all random values. The same seed, clock and requests give the same answers. Default 1. */
  readonly seed?: number
  /** Invoice lines of `scale`. Default 200,000. */
  readonly rows?: number
  /** The port of the API. Default 0: a free one. */
  readonly port?: number
  /** The port of the control plane. Default 0: a free one. */
  readonly controlPort?: number
  readonly clock?: ClockOptions
  /** A snapshot file with which the server starts; `data` is then only what a reset makes. */
  readonly load?: string
  /** The name of a scenario that runs before the start returns. */
  readonly scenario?: string
}

/** The server's clock. Without options it is the clock of the machine. */
export interface ClockOptions {
  /** The time at the start and after each reset, RFC 3339 in UTC. Default: the present. */
  readonly now?: string
  /** Whether the clock stands still until it is moved. Default false. */
  readonly stopped?: boolean
}

/** A server that runs. */
export interface ReferenceServer extends ControlPlane {
  /** The base address of the API, for example `http://127.0.0.1:41873/!/api/v2`. */
  readonly baseUrl: string
  /** Ends the server. A second call has no effect. */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

class Running extends ControlPlane implements ReferenceServer {
  readonly baseUrl: string
  readonly close: () => Promise<void>
  private readonly restart: (work: () => Promise<void>) => Promise<void>

  constructor(urls: Process.RunningServer, close: () => Promise<void>, restart: Running["restart"]) {
    super(urls.controlUrl)
    this.baseUrl = urls.baseUrl
    this.close = close
    this.restart = restart
  }

  override reset(options: ResetOptions = {}): Promise<void> {
    return this.restart(() => super.reset(options))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const dataKinds: ReadonlyArray<string> = ["empty", "demo", "scale"]

/**
 * Starts a server. Rejects with an error that names the port when another program listens on it, and with a `RangeError`
 * when `clock.now` is no time, or `data` is none of its values.
 */
export const start = async (options: StartOptions = {}): Promise<ReferenceServer> => {
  const { clock: clockOptions = {}, data = "demo", port = 0, controlPort = 0, rows, seed, load, scenario } = options
  if (!dataKinds.includes(data)) throw new RangeError(`data must be ${dataKinds.join(", ")}, and not ${data}`)
  const scope = Scope.makeUnsafe()
  const clock = startClock(clockOptions.now, Effect.runSync(Clock.clockWith(Effect.succeed)))
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const urls = await Effect.runPromise(
      Process.start({ port, controlPort, data, rows, seed, load, scenario }).pipe(
        Scope.provide(scope),
        Effect.provideService(Clock.Clock, clock.clock)
      )
    )
    const plane = new ControlPlane(urls.controlUrl)
    // The records are made while the clock stands still, so that they do not depend on the speed of the machine.
    const stop = async () => {
      if (clockOptions.stopped === true) await plane.setClock({ now: clock.startTime(), stopped: true })
    }
    await stop()
    clock.run()
    return new Running(urls, close, async (work) => {
      clock.hold()
      try {
        await work()
        await stop()
      } finally {
        clock.run()
      }
    })
  } catch (error) {
    await close()
    throw error
  }
}
