/**
 * What the parts of a seed share: the virtual time, the source, the warehouse, its connections, and the checks of what
 * has landed.
 */
import type { Client } from "pg"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import type { SyncReport } from "../../src/sync/Sync.ts"
import { type Canonical, ofSource } from "./checkers/Canonical.ts"
import { type Lenses, lensesOf } from "./checkers/Kept.ts"
import type { Checker, Fed, ResourceResult, Run, RowVersion, Subject } from "./checkers/Checker.ts"
import { chance } from "./kernel/Chance.ts"
import { Kernel, type Owner } from "./kernel/Kernel.ts"
import { trace as traceOf } from "./kernel/Trace.ts"
import type { Plan } from "./Plan.ts"
import { Connections } from "./world/Connections.ts"
import { FeedReader } from "./world/FeedReader.ts"
import { Ports } from "./world/Ports.ts"
import { Sender } from "./world/Sender.ts"
import type { Sessions } from "./world/Sessions.ts"
import { Source } from "./world/Source.ts"
import { Warehouse } from "./world/Warehouse.ts"

export const began = Date.UTC(2026, 10, 21, 3, 0, 0) * 1000
export const turnsMax = 2_000_000
/** By then the server has noticed every connection that ended. */
const noticed = 10_000_000

export interface Bench {
  readonly sessions: Sessions
  readonly monitor: Client
  /** Removes everything that a seed wrote. */
  readonly clear: () => Promise<void>
  /** Drops the tables of resources that a seed altered. The next {@link clear} creates them again. */
  readonly drop: (paths: ReadonlyArray<string>) => Promise<void>
}

/** A part of a seed: what runs beside the source and the warehouse, from the first fault to the last check. */
export interface Part {
  readonly run: () => Promise<void>
  readonly end: () => {
    /** Requests and writes. */
    readonly steps: number
    readonly kills: number
  }
}

/** A violation that a checker reported. */
export class Objection extends Error {
  readonly checker: Pick<Checker, "name" | "holds">
  constructor(checker: Pick<Checker, "name" | "holds">, what: string) {
    super(what)
    this.checker = checker
  }
}

/** Asks every checker. The first violation ends the seed. */
export const check = <C extends Pick<Checker, "name" | "holds">>(
  checkers: ReadonlyArray<C>,
  ask: (checker: C) => string | null | undefined
): void => {
  for (const checker of checkers) {
    const what = ask(checker) ?? null
    if (what !== null) throw new Objection(checker, what)
  }
}

/** The result of each resource of a sync. */
const resultsOf = (report: SyncReport): ReadonlyArray<ResourceResult> =>
  report.companies.flatMap((company): ReadonlyArray<ResourceResult> =>
    company.companyId === null
      ? [{ resource: "all", company: 0, status: "failed", reason: company.failure?.message ?? "no reason" }]
      : company.outcomes.map((outcome) => ({
          resource: outcome.resource,
          company: Number(outcome.companyId),
          status: outcome.status,
          reason: outcome.failure?.message ?? (outcome.notes.join("; ") || null)
        }))
  )

export type World = ReturnType<typeof openWorld>

export const openWorld = (bench: Bench, drawn: Plan, keep: boolean) => {
  const { seed } = drawn
  const trace = traceOf(keep, began)
  // Seeds with pushes draw from streams of their own.
  const kernel = new Kernel(began, chance(seed, drawn.pushing === null ? "scheduler" : "push scheduler"))
  const fired = new Map<string, number>()
  const fire = (what: string) => void fired.set(what, (fired.get(what) ?? 0) + 1)
  const scene = { kernel, drawn, trace, fired: fire }
  const sender = new Sender(scene)
  const lenses = lensesOf(drawn.later.rules)
  const warehouse = new Warehouse(bench.monitor, lenses)
  const companies = drawn.companies === 2 ? [1, 2] : [1]
  const source = new Source(kernel, drawn, companies, drawn.hooks === "off" ? null : sender)
  for (const company of companies) source.token(company)
  for (const installation of source.installations) {
    source.control(installation, "PUT", "/limits", { requestsPerMinute: 600 })
    source.control(installation, "PUT", "/dialect", drawn.dialect)
  }
  const subjects = companies.flatMap((company) =>
    drawn.resources.map((path) => ({ company, resource: serviceV2.resources.get(path)! }))
  )

  const canonicalBy = (lens: Lenses[keyof Lenses] | undefined) => {
    const forms = new Map<string, Canonical>()
    return (company: number, resource: Resource, text: string): Canonical => {
      const key = `${company} ${resource.path} ${text}`
      let form = forms.get(key)
      if (form === undefined) forms.set(key, (form = ofSource(resource, text, lens?.(resource))))
      return form
    }
  }
  const canonical = canonicalBy(lenses?.open)
  const kept = lenses === null ? canonical : canonicalBy(lenses.kept)

  /** What a part does after each commit, and at each step of a process. */
  const watch = {
    committed: (): Promise<void> => Promise.resolve(),
    stepped: (_owner: Owner, _what: string): void => {}
  }
  const connections = new Connections(scene, bench.sessions, {
    committed: () => watch.committed(),
    stepped: (owner, what) => watch.stepped(owner, what)
  })
  const ports = new Ports(scene)
  const feed = new FeedReader(warehouse)

  const stamps = new Map<string, string>()
  /** Checks each table whose checkpoint has changed, and those that are open. */
  const checkTables = async (
    checkers: ReadonlyArray<Checker>,
    checkpoints: Awaited<ReturnType<Warehouse["checkpoints"]>>,
    also: {
      /** Tables that are checked without a change of their checkpoint. */
      readonly isOpen?: (company: number, path: string) => boolean
      readonly landed?: (subject: Subject, runs: ReadonlyArray<Run>) => void
      readonly checked?: (subject: Subject) => Promise<void>
    } = {}
  ): Promise<void> => {
    const gap = await feed.read()
    if (gap !== null)
      throw new Objection(
        checkers.find(({ name }) => name === "fed")!,
        gap
      )
    for (const { company, resource: path, stamp } of checkpoints) {
      const key = `${company} ${path}`
      // The end of a run changes the ledger only, not the checkpoint.
      if (stamps.get(key) === stamp && also.isOpen?.(company, path) !== true) continue
      stamps.set(key, stamp)
      const resource = serviceV2.resources.get(path)!
      const { subject, runs } = await warehouse.landed(company, resource)
      also.landed?.(subject, runs)
      const fed = await feed.compare(company, resource)
      check(checkers, (one) => one.landed?.({ now: kernel.now, subject, runs, fed }))
      await also.checked?.(subject)
    }
  }

  /** Lets virtual time pass. */
  const pass = async (micros: number) => {
    kernel.after(micros, null, () => kernel.end())
    await kernel.run(turnsMax)
  }

  /** The state of the warehouse after a sync, and what the sync said (null when its process died). */
  const finalOf = async (report: SyncReport | null, isDisputed: boolean) => {
    await pass(noticed)
    const now: Array<Subject> = []
    const kept = new Map<string, ReadonlyArray<RowVersion>>()
    const fed = new Map<string, Fed>()
    await feed.read()
    for (const { company, resource } of subjects) {
      now.push(await warehouse.subject(company, resource))
      kept.set(`${company} ${resource.path}`, await warehouse.history(company, resource))
      fed.set(`${company} ${resource.path}`, await feed.compare(company, resource))
    }
    if (drawn.later.sameNumber !== null) {
      const hasEqualIds = now.some(({ company, resource, rows }) =>
        now.some(
          (one) => one.company < company && one.resource === resource && [...rows.keys()].some((id) => one.rows.has(id))
        )
      )
      if (hasEqualIds) fire("G4 rows of two companies with equal ids")
    }
    return {
      subjects: now,
      runs: await warehouse.runs(),
      fed: (subject: Subject) => fed.get(`${subject.company} ${subject.resource.path}`)!,
      history: (subject: Subject) => kept.get(`${subject.company} ${subject.resource.path}`)!,
      said: report === null ? null : resultsOf(report),
      leftovers: {
        "sessions lent": bench.sessions.busy,
        "open transactions": connections.inTransaction,
        "rows of scan_ids": await warehouse.count("tributary.scan_ids"),
        "rows of refetch_requests": isDisputed
          ? await warehouse.unansweredRefetches()
          : await warehouse.count("tributary.refetch_requests")
      },
      isDisputed
    }
  }

  return {
    ...scene,
    scene,
    bench,
    seed,
    fired,
    fire,
    sender,
    source,
    warehouse,
    companies,
    subjects,
    canonical,
    kept,
    watch,
    connections,
    ports,
    feed,
    checkTables,
    pass,
    finalOf
  }
}
