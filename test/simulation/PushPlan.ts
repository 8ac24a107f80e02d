/**
 * The plan of a seed with pushes.
 *
 * Promise: the plan follows from the seed and the options alone. It draws from streams of its own, so the draws of seeds
 * without pushes do not change. It is a {@link Plan} for everything that both kinds of seeds share.
 */
import { chance } from "./kernel/Chance.ts"
import {
  classNames,
  type FaultClass,
  later,
  plan,
  type Plan,
  type Pushes,
  type PlanOptions,
  installationsShare,
  laterShare,
  noneLater,
  sameNumberOf,
  undisturbed
} from "./Plan.ts"
import { isOfPushes } from "./PushClasses.ts"
import type { NetworkFault } from "./world/Network.ts"

/** A fault of a write, before or after it is done. */
export type WriteFault =
  | "U1 500 before"
  | "U1 refused"
  | "U1 reset before"
  | "U1 black hole"
  | "U2 answer lost"
  | "U2 cut off"
  | "U2 too late"
  | "U3 late on its way"
  | "U3 long work"
  | "U6 rate limited"
  | "U7 500 after"
  | "U9 HTML before"
  | "U9 HTML after"
  | "U10 another 207"
  | "U24 unauthorized"
  | "U24 forbidden"
  | "U24 redirect"

/** Times in microseconds. */
export interface Pushing {
  /** Approximate number of records of a file. */
  readonly records: number
  readonly files: number
  /** Rows that people insert by SQL. */
  readonly inserted: number
  /** Updates and cancels. */
  readonly changes: number
  readonly useBatch: boolean
  readonly keyAgeMax: number
  /** Number of processes for one file. */
  readonly pushers: number
  /** Number of processes that send the rows inserted by SQL. */
  readonly keepers: number
  readonly writes: ReadonlyArray<readonly [WriteFault, number]>
  readonly copyRate: number
  /** Probability that the first answer to a key is a stored 500. */
  readonly storedRate: number
  /** Probability that a record of a batch fails temporarily. */
  readonly itemRate: number
  /** How a bad record affects its batch: alone, the batch is rejected, or the batch fails. */
  readonly poison: "item" | "refused" | "failing"
  /** The largest batch that the source accepts; null when the path does not exist. */
  readonly batchMax: number | null
  readonly noBatch: 404 | 405 | 415 | 501 | null
  readonly longWork: number
  /** Probability that other people change a record right after it was read. */
  readonly meddleRate: number
  /** The period in which every write fails. */
  readonly outage: { readonly from: number; readonly to: number } | null
  /** Probabilities that a process is killed when it sends a write, and right after a commit. */
  readonly killAtSend: number
  readonly killAtCommit: number
}

export interface PushPlan extends Plan {
  readonly pushing: Pushing
}

/** Fault classes that also apply to pushes; the others concern syncs. */
const shared: ReadonlySet<FaultClass> = new Set([
  "S1",
  "S2",
  "S4",
  "Pp",
  "Pl",
  "Pd",
  "N2",
  "N3",
  "N4",
  "N5",
  "N7",
  "N15",
  "C1",
  "C2",
  "C3",
  "D1",
  "D2",
  "D3",
  "D4",
  "D8",
  "D12",
  "K1",
  "K2",
  "O1",
  "G4"
])

export const concernsPushes = (name: FaultClass): boolean => isOfPushes(name) || shared.has(name)

const rare: Readonly<Partial<Record<FaultClass, number>>> = {
  Pp: 0.15,
  Pl: 0.15,
  C3: 0.4,
  U8: 0.4,
  U13: 0.35,
  U15: 0.35,
  U20: 0.3,
  U23: 0.25,
  U24: 0.3
}

/** The resources that are pushed. */
export const pushResources = [
  "salesmen",
  "customers",
  "payments",
  "invoicelines",
  "teamprojecttasktags",
  "areas",
  "stages"
] as const

const day = 86_400_000_000
const minute = 60_000_000

export const pushPlan = (seed: number, options: PlanOptions, pushes: Exclude<Pushes, "off">): PushPlan => {
  const swarm = chance(seed, "push swarm")
  const draw = chance(seed, "push plan")
  const on = new Set<FaultClass>()
  for (const name of classNames) {
    if (!concernsPushes(name) || later.has(name)) continue
    const drawn = swarm.chance(rare[name] ?? 0.5)
    if (options.on?.includes(name) === true || drawn) on.add(name)
  }
  if (options.on?.includes("O1") === true || chance(seed, "class O1").chance(laterShare)) on.add("O1")
  if (options.on?.includes("G4") === true || chance(seed, "class G4").chance(installationsShare)) on.add("G4")
  for (const name of options.off ?? []) on.delete(name)
  if (options.only !== undefined) for (const name of on) if (!options.only.includes(name)) on.delete(name)
  const has = (name: FaultClass) => on.has(name)
  const share = (name: FaultClass, least: number, most: number) => {
    const drawn = least * (most / least) ** draw.next()
    return has(name) ? drawn : 0
  }
  const rates = <F>(name: FaultClass, faults: ReadonlyArray<F>, most = 0.25): Array<readonly [F, number]> => {
    const drawn = share(name, most / 6, most)
    return has(name) ? faults.map((fault) => [fault, drawn / faults.length] as const) : []
  }
  const reads = (name: FaultClass, faults: ReadonlyArray<NetworkFault>) => rates(name, faults, 0.1)
  const resources = [...new Set(Array.from({ length: draw.integer(1, 2) }, () => draw.pick(pushResources)))]
  const paging = has("Pp") ? draw.pick(["page", "offset"]) : has("Pl") ? "link" : "cursor"
  const seconds = has("U23") ? draw.integer(100, 200) : draw.skewed(15, 90)
  const outageAt = draw.next() * 0.1
  const drawn: PushPlan = {
    seed,
    on,
    companies: draw.chance(0.12) || has("G4") ? 2 : 1,
    resources,
    pageSize: draw.skewed(5, 100),
    batchRecordsMax: draw.skewed(2, 12),
    concurrency: draw.integer(1, 3),
    requestsPerMinute: 600,
    dialect: {
      paging,
      itemsKey: draw.pick(["data", "data", "results", "items", "resource"]),
      dateForm: has("Pd") ? "timestamp" : "mixed",
      keyOrder: draw.chance(0.2) ? draw.integer(1, 1_000_000) : null,
      cancelTrue: draw.pick(["catalogue", "includes", "only"]),
      retryAfter: draw.pick(["seconds", "date"]),
      etag: draw.chance(0.6),
      deleteUnknown: draw.pick([404, 422]),
      batchStatus: has("U11") ? "text" : "integer",
      uniqueExternalid: has("U12")
    },
    safety: seconds * 1_000_000,
    cycleEvery: draw.skewed(15, 60) * 1_000_000,
    processes: pushes === "beside" ? 1 : 0,
    network: [
      ...reads("S1", ["S1 server error"]),
      ...reads("S2", ["S2 rate limited"]),
      ...reads("S4", ["S4 garbage", "S4 empty", "S4 error envelope"]),
      ...reads("N2", ["N2 reset before", "N2 reset in body"]),
      ...reads("N3", ["N3 black hole"]),
      ...reads("N4", ["N4 answer lost"]),
      ...reads("N5", ["N5 slow"]),
      ...reads("N7", ["N7 truncated"]),
      ...reads("N15", ["S4 html"])
    ],
    delayMax: draw.skewed(20_000, 1_000_000),
    database: {
      sqlstates: has("D4") ? ["40001", "40P01", "55P03", "53100", "57014", "25006"] : [],
      errorRate: share("D4", 0.0005, 0.005),
      lostRate: share("D2", 0.0005, 0.005),
      commitUnknownRate: share("D3", 0.03, 0.25),
      slowRate: share("D12", 0.002, 0.02),
      connectRate: share("D2", 0.005, 0.05)
    },
    killRate: share("C1", 0.0005, 0.004),
    pauseRate: share("C3", 0.001, 0.006),
    stopRate: share("C2", 0.0005, 0.003),
    lockLossRate: share("D8", 0.001, 0.01),
    restarts: has("D1") ? draw.integer(1, 2) : 0,
    records: draw.skewed(1, 10),
    writes: 0,
    rewriteShare: 0,
    overlap: draw.pick([0, 2_000_000, 300_000_000]),
    sweepEvery: 0,
    sharedBudget: draw.chance(0.3),
    skews: [0, 1].map(() => (has("K1") ? draw.pick([-1, 1]) * draw.skewed(1_000, 400 * 86_400_000) * 1000 : 0)),
    hooks: "off",
    pushes,
    webhooks: {
      cycleEvery: minute,
      failureThreshold: 24,
      checkEvery: minute,
      keep: 30 * day,
      ...undisturbed,
      asleep: has("U15") ? draw.pick([draw.skewed(3_600_000_000, day), draw.skewed(day, 4 * day)]) : 0
    },
    later: { ...noneLater, sameNumber: has("G4") ? sameNumberOf(seed) : null },
    pushing: {
      records: draw.skewed(3, 40),
      files: draw.integer(2, 4),
      inserted: has("U21") ? draw.skewed(2, 14) : 0,
      changes: has("U19") ? draw.skewed(2, 14) : 0,
      useBatch: draw.chance(0.88),
      keyAgeMax: 23 * 3_600_000_000,
      pushers: has("U22") ? 2 : 1,
      keepers: has("U21") || has("U19") ? ((has("U22") && draw.chance(0.3)) || has("O1") ? 2 : 1) : 0,
      writes: [
        ...rates<WriteFault>("U1", ["U1 500 before", "U1 refused", "U1 reset before", "U1 black hole"]),
        ...rates<WriteFault>("U2", ["U2 answer lost", "U2 cut off", "U2 too late"], 0.35),
        ...rates<WriteFault>("U3", ["U3 late on its way", "U3 long work"]),
        ...rates<WriteFault>("U6", ["U6 rate limited"]),
        ...rates<WriteFault>("U7", ["U7 500 after"], 0.35),
        ...rates<WriteFault>("U9", ["U9 HTML before", "U9 HTML after"]),
        ...rates<WriteFault>("U10", ["U10 another 207"], 0.8),
        ...rates<WriteFault>("U24", ["U24 unauthorized", "U24 forbidden", "U24 redirect"], 0.1)
      ],
      copyRate: share("U4", 0.1, 0.6),
      storedRate: share("U8", 0.05, 0.4),
      itemRate: share("U14", 0.1, 0.4),
      poison: has("U13") ? draw.pick(["refused", "refused", "failing"]) : "item",
      batchMax: has("U20") ? draw.integer(1, 6) : null,
      noBatch: has("U20") && draw.chance(0.4) ? draw.pick([404, 405, 415, 501]) : null,
      longWork: draw.skewed(50_000, 20_000_000),
      meddleRate: share("U16", 0.1, 0.5),
      outage: has("U23")
        ? { from: outageAt * seconds * 1_000_000, to: (outageAt + 0.2 + 0.7 * draw.next()) * seconds * 1_000_000 }
        : null,
      killAtSend: share("C1", 0.05, 0.3),
      killAtCommit: share("C1", 0.01, 0.05)
    }
  }
  return { ...drawn, ...options.overrides, pushing: options.overrides?.pushing ?? drawn.pushing }
}

/** The plan of a seed with or without pushes. */
export const planOf = (seed: number, options: PlanOptions): Plan => {
  const pushes = options.overrides?.pushes ?? "off"
  return pushes === "off" ? plan(seed, options) : pushPlan(seed, options, pushes)
}
