/**
 * The companies of a process of `serve`, while companies are added, paused, changed and removed.
 *
 * Promise: a change is applied within seconds, and disturbs no other company: the work of a company that is paused or
 * removed ends, that of a new one begins, and that of a changed one begins again. A company's connection is closed after
 * its work has ended. While the companies cannot be read, those that were read before stay.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Database } from "../postgres/Database.ts"
import { bucketOf, parallelScope, stop } from "../processes/Ownership.ts"
import type { SecretsCompany } from "../subscriptions/SecretCache.ts"
import type { Company } from "../sync/Company.ts"

export interface ServedCompany {
  /** Another object after a change that its work must notice. */
  readonly company: Company
  /** The token that opens its signing secrets, and the configured ones. */
  readonly secrets: SecretsCompany
  /** The name of its installation, or the host of its address. */
  readonly installation: string
  /** The key of its rate budget. */
  readonly fingerprint: string
  /** Its deliveries are stored, and nothing else runs. */
  readonly isPaused: boolean
  /** The resources that it does not read: paths, or patterns with `*`. */
  readonly excluded: ReadonlyArray<{ readonly pattern: string }>
  /** Closes its connection to the source. */
  readonly close: Effect.Effect<void>
}

/** Companies by name. */
export type ServedCompanies = ReadonlyMap<string, ServedCompany>

export interface CompanySource<E> {
  /** A number that differs after a change; cheap. */
  readonly revision: Effect.Effect<bigint, E, SqlClient.SqlClient>
  /** Reads the companies, and connects the new ones. An unchanged company is the same object as before. */
  readonly read: (before: ServedCompanies) => Effect.Effect<ServedCompanies, E, Database | SqlClient.SqlClient>
}

/** Companies that never change. */
export const fixed = (
  companies: ReadonlyArray<Pick<ServedCompany, "company" | "secrets" | "fingerprint">>
): CompanySource<never> => ({
  revision: Effect.succeed(0n),
  read: () =>
    Effect.succeed(
      new Map(
        companies.map((one) => [
          one.company.name,
          { ...one, installation: "", isPaused: false, excluded: [], close: Effect.void }
        ])
      )
    )
})

export interface Registry<E> {
  readonly companies: () => ServedCompanies
  /** The revision that this process has applied, the end of removed work included. */
  readonly revision: () => bigint
  /** Opens after each change. */
  readonly changed: Latch.Latch
  /** Notices and applies changes, for ever. `onChange` runs before the work of the companies changes. */
  readonly watch: (onChange: Effect.Effect<void>) => Effect.Effect<never, E, Database | SqlClient.SqlClient>
  /** Runs the work of each active company in a bucket. */
  readonly runWork: <R>(
    bucket: number,
    work: (served: ServedCompany) => Effect.Effect<unknown, never, R>
  ) => Effect.Effect<never, never, R>
}

const refreshEveryMs = 2_000

interface State {
  served: ServedCompanies
  byBucket: ReadonlyMap<number, ReadonlyArray<ServedCompany>>
  revision: bigint
  /** Starts and ends work in a bucket, for each of its keepers. */
  readonly keepers: Map<number, Set<Effect.Effect<void>>>
}

const groupByBucket = (served: ServedCompanies) => Map.groupBy(served.values(), ({ company }) => bucketOf(company.name))

const isSameWork = (one: ServedCompany | undefined, other: ServedCompany | undefined) =>
  one?.company === other?.company && one?.isPaused === other?.isPaused

const changedBuckets = (before: ServedCompanies, after: ServedCompanies): ReadonlySet<number> => {
  const names = new Set([...before.keys(), ...after.keys()])
  return new Set([...names].filter((name) => !isSameWork(before.get(name), after.get(name))).map(bucketOf))
}

const refresh = Effect.fnUntraced(function* <E>(
  state: State,
  source: CompanySource<E>,
  changed: Latch.Latch,
  onChange: Effect.Effect<void>
) {
  const revision = yield* source.revision
  if (revision === state.revision) return
  const before = state.served
  const served = yield* source.read(before)
  yield* Effect.uninterruptible(
    Effect.gen(function* () {
      state.served = served
      state.byBucket = groupByBucket(served)
      yield* onChange
      const keepers = [...changedBuckets(before, served)].flatMap((bucket) => [...(state.keepers.get(bucket) ?? [])])
      yield* Effect.all(keepers, { concurrency: "unbounded", discard: true })
      for (const [name, { company, close }] of before) if (served.get(name)?.company !== company) yield* close
      state.revision = revision
      yield* changed.open
    })
  )
})

const runWork = Effect.fnUntraced(function* <R>(
  state: State,
  bucket: number,
  work: (served: ServedCompany) => Effect.Effect<unknown, never, R>
) {
  const context = yield* Effect.context<R>()
  const scope = yield* parallelScope
  const oneAtATime = yield* Semaphore.make(1)
  const running = new Map<string, { readonly company: Company; readonly fiber: Fiber.Fiber<unknown> }>()
  const update = oneAtATime.withPermit(
    Effect.gen(function* () {
      const active = new Map(
        (state.byBucket.get(bucket) ?? []).flatMap((one) => (one.isPaused ? [] : [[one.company.name, one] as const]))
      )
      const ended = [...running].filter(([name, { company }]) => active.get(name)?.company !== company)
      yield* Effect.forEach(
        ended,
        ([name, { fiber }]) =>
          Effect.andThen(
            stop(fiber),
            Effect.sync(() => running.delete(name))
          ),
        { concurrency: "unbounded", discard: true }
      )
      for (const [name, served] of active) {
        if (running.has(name)) continue
        const fiber = yield* work(served).pipe(
          Effect.interruptible,
          Effect.provideContext(context),
          Effect.forkIn(scope)
        )
        running.set(name, { company: served.company, fiber })
      }
    })
  )
  const keepers = state.keepers.get(bucket) ?? new Set()
  state.keepers.set(bucket, keepers)
  yield* Effect.acquireRelease(
    Effect.sync(() => keepers.add(update)),
    () => Effect.sync(() => keepers.delete(update))
  )
  yield* Effect.uninterruptible(update)
  return yield* Effect.never
}, Effect.scoped)

/** The companies of a source, until the end of the scope. Fails where they cannot be read the first time. */
export const make = Effect.fnUntraced(function* <E>(
  source: CompanySource<E>
): Effect.fn.Return<Registry<E>, E, Database | SqlClient.SqlClient | Scope.Scope> {
  const revision = yield* source.revision
  const served = yield* source.read(new Map())
  const state: State = { served, byBucket: groupByBucket(served), revision, keepers: new Map() }
  yield* Effect.addFinalizer(() =>
    Effect.forEach(state.served.values(), ({ close }) => close, { concurrency: "unbounded", discard: true })
  )
  const changed = Latch.makeUnsafe(false)
  return {
    companies: () => state.served,
    revision: () => state.revision,
    changed,
    watch: (onChange) => Effect.forever(Effect.delay(refresh(state, source, changed, onChange), refreshEveryMs)),
    runWork: (bucket, work) => runWork(state, bucket, work)
  }
})
