/**
 * The production code, put together as `main.ts` puts it together, with simulated services beneath it.
 *
 * Promise: this is the one file that knows how the pipeline is called; nothing of the pipeline is replaced but the
 * network, the connections, the clock, the chance and the scheduler.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Logger from "effect/Logger"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Scheduler from "effect/Scheduler"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as ServiceClient from "../../../connectors/service-v2/client/ServiceClient.ts"
import { Budget } from "../../../src/budget/Budget.ts"
import { Budgets, layerPostgres } from "../../../src/budget/Budgets.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { datasetsDefault } from "../../../src/model/Table.ts"
import { sync, type SyncReport } from "../../../src/pipeline/Sync.ts"
import { engineDefault } from "../../../src/pipeline/SyncResource.ts"
import type { Chance } from "../kernel/Chance.ts"
import type { Kernel, Owner } from "../kernel/Kernel.ts"
import { family, type Plan } from "../Plan.ts"
import type { Connections } from "./Connections.ts"
import type { Network } from "./Network.ts"
import { type Source, basePath, origin } from "./Source.ts"

export interface Machine {
  readonly kernel: Kernel
  readonly connections: Connections
  readonly network: Network
  readonly source: Source
  readonly drawn: Plan
}

export interface Wish {
  readonly full: boolean
  readonly acceptDeletions?: boolean
  /** Reads everything again beside live syncing. */
  readonly backfill?: boolean
}

/** The longest Retry-After that is waited for, as configured by default. */
const heldMaxMs = 600_000

/** One `tributary sync` of every company of the plan. */
const cycle = Effect.fnUntraced(function* (
  { drawn, source, network }: Machine,
  owner: Owner,
  life: number,
  wish: Wish
) {
  const resources = drawn.resources.map((path): Resource => serviceV2.resources.get(path)!)
  const companies = yield* Effect.forEach([...source.tokens], ([company, token]) =>
    Effect.gen(function* () {
      const baseUrl = `${origin}${basePath}`
      const secret = Redacted.make(token)
      const { requestsPerMinute } = drawn
      const budgets = yield* Budgets
      const budget = yield* budgets.of({ baseUrl, token: secret, scope: "token", requestsPerMinute, heldMaxMs })
      const connector = yield* ServiceClient.make({
        baseUrl,
        token: secret,
        catalogue: serviceV2,
        companyId: null,
        pageSize: drawn.pageSize,
        paging: { mode: pagingMode(drawn) },
        itemsKey: "auto"
      }).pipe(
        Effect.provideService(Budget, budget),
        Effect.provideService(HttpClient.HttpClient, network.client(owner, life)),
        Effect.orDie
      )
      return { name: `company ${company}`, connector, resources }
    })
  )
  return yield* sync({
    companies,
    datasets: datasetsDefault,
    full: wish.full,
    acceptDeletions: wish.acceptDeletions ?? false,
    concurrency: drawn.concurrency,
    batchRecordsMax: drawn.batchRecordsMax,
    ...(wish.backfill === true ? { backfill: { since: null, until: null } } : {}),
    // No full scan but those that the engine itself asks for: a repair would hide what was lost.
    engine: {
      ...engineDefault,
      fullEveryMs: null,
      overlapMs: drawn.overlap / 1000,
      sweepEveryMs: drawn.resources.includes(family[1]!) ? drawn.sweepEvery / 1000 : 0
    }
  })
})

const pagingMode = ({ dialect }: Plan) => {
  const { paging } = dialect
  return paging === "page" || paging === "offset" || paging === "link" ? paging : "auto"
}

const randomOf = (chance: Chance): Context.Service.Shape<typeof Random.Random> => ({
  nextIntUnsafe: () => chance.integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  nextDoubleUnsafe: () => chance.next()
})

/** Runs one cycle in a process; `ended` is called when it ended by itself, never when the process was killed. */
export const start = (
  machine: Machine,
  owner: Owner,
  life: number,
  wish: Wish,
  clock: { readonly skew: () => number; readonly monotonicOrigin: number },
  chance: Chance,
  ended: (result: { readonly report: SyncReport | null; readonly cause: string | null }) => void
) => {
  const { kernel, connections } = machine
  const context = Context.make(Clock.Clock, kernel.clock(owner, clock.skew, clock.monotonicOrigin)).pipe(
    Context.add(Scheduler.Scheduler, kernel.scheduler(owner)),
    Context.add(Random.Random, randomOf(chance)),
    Context.add(Logger.CurrentLoggers, new Set())
  )
  const program = Effect.scoped(
    Effect.flatMap(connections.services(owner), (services) =>
      (machine.drawn.sharedBudget
        ? Effect.provide(cycle(machine, owner, life, wish), layerPostgres)
        : cycle(machine, owner, life, wish)
      ).pipe(Effect.provide(services))
    )
  )
  const fiber = Effect.runForkWith(context)(program as Effect.Effect<SyncReport, unknown>)
  fiber.addObserver((exit) => {
    if (owner.state === "dead") return
    ended(
      exit._tag === "Success"
        ? { report: exit.value, cause: null }
        : { report: null, cause: Cause.pretty(exit.cause).split("\n")[0]! }
    )
  })
  return fiber
}
