/**
 * The plan that a seed draws: the fault classes that are on and their rates, the source, the processes.
 *
 * Promise: the plan follows from the seed and the options alone. Each class is on with probability one half (swarm
 * testing), since no single mixture finds everything. A class that the engine is not required to survive yet is listed
 * in {@link pending}. It is never drawn and is on only by request.
 */
import { type Chance, chance } from "./kernel/Chance.ts"
import { isOfPushes, pushClasses } from "./PushClasses.ts"
import type { Pushing } from "./PushPlan.ts"
import type { RulesPeriod } from "./RulesPlan.ts"
import type { NetworkFault } from "./world/Network.ts"

/** The fault classes that concern the sync engine. */
export const classes = {
  S1: "server errors",
  S2: "429 with every form of Retry-After",
  S2h: "a Retry-After that is absurdly long, from an intermediary",
  S3: "401 and 403 in the middle of a run",
  S3r: "one resource whose requests are refused or redirected for a while",
  S4: "answers that are not of this API",
  S4e: "a list that is empty by mistake",
  S5: "records that change again and again",
  S6: "ties: many records with one stamp",
  S7: "late visibility within the bound",
  S7x: "late visibility beyond the bound",
  S8: "no synced_through",
  S9: "records without a stamp",
  S10: "page tokens that expire",
  S10s: "pages shorter than requested",
  S11: "records removed without a tombstone",
  S11r: "removed ids that are used again",
  S12: "unknown fields",
  S13: "values that do not fit",
  S15: "every record rewritten at one instant",
  Pp: "pages by number or offset",
  Pl: "pages by link",
  Pb: "a bare array, pages by link",
  Pe: "exclusive modifiedsince",
  Pt: "ties in an order other than by id",
  Pd: "times without a fraction, days as midnight",
  B1: "records stamped exactly at the cursor",
  CH: "children read again when their parent changes",
  BF: "a backfill beside live syncing",
  N1: "refused connections",
  N2: "resets",
  N3: "black holes",
  N4: "answers lost",
  N5: "slow answers",
  N7: "truncated bodies",
  N15: "errors of proxies",
  N16: "redirects",
  C1: "kills",
  C2: "interruptions with a grace period",
  C3: "pauses longer than any timeout",
  C4: "two processes at once",
  C8: "crash loops",
  D1: "server restarts",
  D2: "connections lost",
  D3: "commits of unknown outcome",
  D4: "SQL states",
  D8: "locks lost without an error",
  D12: "slow statements",
  K1: "wrong clocks",
  K2: "clocks that jump",
  W1: "deliveries dropped, up to all of them: for seconds, and for hours or days during a long sleep",
  W2: "deliveries doubled, up to twenty times; with R8 over several days",
  W3: "deliveries out of order",
  W4: "deliveries that arrive after a deletion or a full scan",
  W5: "events of records that cannot be read yet, or are shown in an earlier version",
  W6: "secrets that are rotated",
  W7: "deliveries that are captured and sent again",
  W8: "forged deliveries",
  W9: "no connection to the receiver for a while, then all deliveries at once",
  W10: "bursts of events",
  W11: "events of unknown types, some of them the only event of a record",
  W12: "subscriptions that are disabled, paused or cancelled; some are enabled again before a process has looked",
  W13: "a longer time, in which checks prove freshness",
  R1: "receivers that are down, up to days",
  R2: "receivers that are killed between storing and answering",
  R4: "a database that is unavailable while receiving",
  R5: "receivers slower than the sender's timeout",
  R7: "records that can never be read",
  R8: "processed events that are removed from the inbox and delivered again over a week later",
  S4m: "a page that is empty by mistake, but not when it is requested again: an announced page, or a short list",
  S8p: "pages without a synced_through, among others that have one",
  S16: "later pages from a replica that is behind",
  S18: "records whose version goes back, until an operator accepts it",
  N9: "answers that a cache gives again",
  D5: "sessions that the server ends in the middle",
  D6: "no memory and no disk space, at any statement",
  T1: "tables that are dropped, truncated or created anew, and rows that a person deletes",
  G1: "a configuration that changes between runs and during them",
  G2: "an older release of the program beside a newer one",
  G3: "privacy rules that change between runs and during them, while some processes have the earlier ones",
  S14: "a source that is restored from a backup, and reuses the ids of later records",
  K3: "a warehouse clock that is set back",
  T2: "a warehouse that is restored from an older copy: the rows, the control plane, or both",
  O1: "ownership that errs: several owners, none, or another one at any step",
  G4: "companies of several installations, with equal numbers and equal ids at the source",
  ...pushClasses
} as const

export type FaultClass = keyof typeof classes

export const classNames = Object.keys(classes) as ReadonlyArray<FaultClass>

/** How rows reach the warehouse: by scheduled syncs, by these and webhooks, or by webhooks alone after a first sync. */
export type Hooks = "off" | "beside" | "only"

/** Whether records are pushed: never, beside scheduled syncs, or alone (see `PushPlan.ts`). */
export type Pushes = "off" | "beside" | "only"

/**
 * Classes that were added later. Each draws from a random stream of its own, so that older seeds draw the same as
 * before.
 */
export const later: ReadonlySet<FaultClass> = new Set([
  "S4m",
  "S8p",
  "S16",
  "S18",
  "N9",
  "D5",
  "D6",
  "T1",
  "S14",
  "G1",
  "G2",
  "K3",
  "T2",
  "O1",
  "W13",
  "S3r",
  "G3",
  "G4"
])
export const laterShare = 0.35
/** The share of seeds with G4. */
export const installationsShare = 0.1
/** Classes that excuse many records until an operator acts. They are on less often than the others. */
const laterRare: Readonly<Partial<Record<FaultClass, number>>> = {
  S14: 0.15,
  G1: 0.2,
  G2: 0.2,
  G3: 0.2,
  G4: installationsShare,
  T2: 0.15
}

const isOfWebhooks = (name: FaultClass): boolean => /^[WR]\d/.test(name)

/** Classes that the engine does not survive yet, each with the reason. Empty when it survives all. */
export const pending: Readonly<Partial<Record<FaultClass, string>>> = {}

/** Classes that cause full scans, which repair what other bugs lose. They are on less often than the others. */
const rare: Readonly<Partial<Record<FaultClass, number>>> = {
  CH: 0.15,
  BF: 0.3,
  S9: 0.15,
  S7x: 0.2,
  Pb: 0.2,
  Pp: 0.35,
  Pl: 0.3,
  S8: 0.25,
  W10: 0.15,
  W12: 0.3,
  R1: 0.3,
  R7: 0.2,
  R8: 0.2
}

export interface Plan {
  readonly seed: number
  readonly on: ReadonlySet<FaultClass>
  readonly companies: number
  readonly resources: ReadonlyArray<string>
  readonly pageSize: number
  readonly batchRecordsMax: number
  readonly concurrency: number
  readonly requestsPerMinute: number
  readonly dialect: Readonly<Record<string, unknown>>
  /** Duration of the safety phase, in microseconds. */
  readonly safety: number
  readonly cycleEvery: number
  readonly processes: number
  readonly network: ReadonlyArray<readonly [NetworkFault, number]>
  readonly delayMax: number
  readonly database: {
    readonly sqlstates: ReadonlyArray<string>
    readonly errorRate: number
    readonly lostRate: number
    readonly commitUnknownRate: number
    readonly slowRate: number
    readonly connectRate: number
  }
  /** Probability that a step of a process kills it, pauses it, or interrupts it. */
  readonly killRate: number
  readonly pauseRate: number
  readonly stopRate: number
  readonly lockLossRate: number
  readonly restarts: number
  readonly records: number
  readonly writes: number
  readonly rewriteShare: number
  readonly overlap: number
  /** Minimum time between two full scans of a resource without a cursor, in microseconds. */
  readonly sweepEvery: number
  /** Whether the request budget is counted in the warehouse. */
  readonly sharedBudget: boolean
  readonly skews: ReadonlyArray<number>
  readonly hooks: Hooks
  readonly pushes: Pushes
  /** Settings of webhooks; times in microseconds. */
  readonly webhooks: {
    /** Time between two cycles of the sender. */
    readonly cycleEvery: number
    readonly failureThreshold: number
    /** Time between two checks of the subscriptions and gaps. */
    readonly checkEvery: number
    /** How long processed events are kept. */
    readonly keep: number
    readonly dropRate: number
    readonly copyRate: number
    /** Probability that a proxy keeps a delivery and passes it on at any time, or never. */
    readonly proxyRate: number
    readonly forgeRate: number
    readonly replayRate: number
    readonly slowRate: number
    readonly lostRate: number
    /** Duration of the long sleep in the middle of the safety phase, in which nothing runs; 0: no sleep. */
    readonly asleep: number
  }
  readonly later: Later
  /** What is pushed; null in seeds without pushes. */
  readonly pushing: Pushing | null
}

/** Rates of the classes that were added later, for each answer or statement that they can affect. */
export interface Later {
  readonly emptyRate: number
  readonly unmarkedRate: number
  readonly replicaRate: number
  readonly cacheRate: number
  /** Number of records whose version goes back. Not with webhooks, which resolve events by the stamp. */
  readonly backs: number
  readonly endRate: number
  readonly fullRate: number
  /** Number of losses of a table, or of a part of its rows. */
  readonly tableLosses: number
  /** Number of restores of the warehouse from a copy. Not with webhooks: the copy lacks accepted events. */
  readonly warehouseRestores: number
  /** Number of restores of the source from a backup. Not with webhooks, as {@link Later.backs}. */
  readonly restores: number
  /** The releases and configurations of the processes, in order; empty when they do not change. Not with webhooks. */
  readonly periods: ReadonlyArray<Period>
  /**
   * How the warehouse clock steps. Below one half it is ahead and is then corrected; otherwise it is set back and then
   * corrected. 0: no step.
   */
  readonly clockStep: number
  /** The resource whose requests are refused, from and until times of the safety phase; null when none is. */
  readonly refusal: {
    readonly resource: string
    readonly from: number
    readonly until: number
    readonly fault: NetworkFault
  } | null
  /**
   * The privacy rules of the processes, in order; empty without rules. `RulesPlan.ts` draws them. Not with other releases
   * or configurations.
   */
  readonly rules: ReadonlyArray<RulesPeriod>
  /**
   * The number that each company has at the source, in an installation of its own; null where one installation has all
   * companies.
   */
  readonly sameNumber: number | null
}

/** A release with its configuration, from a moment on. */
export interface Period {
  /**
   * When the first process changes to this period, as a share of the safety phase, and the delay of the other
   * processes.
   */
  readonly from: number
  readonly lag: number
  /** `older` has a catalogue of an earlier generation. */
  readonly release: "current" | "older"
  /** Whether one field of each resource is ignored. */
  readonly ignores: boolean
  /** The index of a resource that is not configured; null when all are. */
  readonly leavesOut: number | null
  /** Records per page; null for the page size of the plan. */
  readonly pageSize: number | null
}

/** The last period is the current release with the configuration of every other plan. */
const periodsOf = (seed: number, isMixed: boolean, isConfigured: boolean): ReadonlyArray<Period> => {
  if (!isMixed && !isConfigured) return []
  const own = chance(seed, "periods")
  // Recorded seeds drew a number here.
  own.next()
  const changes = own.pick([1, 1, 2, 3])
  return Array.from({ length: changes + 1 }, (_, index): Period => {
    const from = index === 0 ? 0 : (index - 1 + 0.2 + 0.7 * own.next()) / changes
    const lag = (own.next() * 0.6) / changes
    const isOld = index === 0 || own.chance(0.4)
    const [ignores, leavesOut, pageSize] = [own.chance(0.6), own.chance(0.5), own.chance(0.6)]
    const [place, size] = [own.integer(0, 2), own.integer(2, 14)]
    const isLast = index === changes
    return {
      from,
      lag,
      release: isMixed && isOld && !isLast ? "older" : "current",
      // Not beside an older release: which of the two rewrites values that the other has put elsewhere is undefined.
      ignores: isConfigured && !isMixed && ignores && !isLast,
      leavesOut: isConfigured && leavesOut && !isLast ? place : null,
      pageSize: isConfigured && pageSize && !isLast ? size : null
    }
  })
}

export const noneLater: Later = {
  emptyRate: 0,
  unmarkedRate: 0,
  replicaRate: 0,
  cacheRate: 0,
  backs: 0,
  endRate: 0,
  fullRate: 0,
  tableLosses: 0,
  warehouseRestores: 0,
  restores: 0,
  periods: [],
  clockStep: 0,
  refusal: null,
  rules: [],
  sameNumber: null
}

/** The number of one of the two companies in the warehouse, too. */
export const sameNumberOf = (seed: number): number => chance(seed, "installations").pick([1, 2])

export interface PlanOptions {
  /** Classes that must be on, independent of what the seed draws and of what {@link pending} lists. */
  readonly on?: ReadonlyArray<FaultClass>
  readonly off?: ReadonlyArray<FaultClass>
  /** Only these classes can be on. */
  readonly only?: ReadonlyArray<FaultClass>
  readonly overrides?: Partial<Plan>
}

/** Small tables with a cursor, and small tables that are read in full each time. */
const withCursor = ["taxgroups", "jobs", "worktypes", "customers", "serviceordertimes", "vendors"]
const without = ["areas", "taskstatuses", "producttypetaxes", "zones"]
/** A parent with a cursor and its children without one. */
export const family = ["vendors", "vendororderfroms"]

export const overlapDefault = 300_000_000

/** The share of seeds with webhooks. In one half of them, only webhooks follow the first sync. */
const hooksShare = 0.34
const day = 86_400_000_000
const hour = 3_600_000_000
const keepLeast = 8 * day

export const plan = (seed: number, options: PlanOptions = {}): Plan => {
  const swarm = chance(seed, "swarm")
  const draw = chance(seed, "plan")
  const on = new Set<FaultClass>()
  // A stream of its own, so that the draws of webhooks change no other draw.
  const around = chance(seed, "webhooks")
  const place = around.next()
  const hooks = options.overrides?.hooks ?? (place < hooksShare / 2 ? "only" : place < hooksShare ? "beside" : "off")
  for (const name of classNames) {
    if (isOfPushes(name) || later.has(name)) continue
    if (name === "S2h") {
      // From a stream of its own, whose name is a part of the draw. Only without webhooks: an hour must pass after healing.
      if ((hooks === "off" && chance(seed, "patience").chance(0.12)) || options.on?.includes(name) === true)
        on.add(name)
      continue
    }
    const isHooks = isOfWebhooks(name)
    const drawn = (isHooks ? around : swarm).chance(rare[name] ?? 0.5) && (!isHooks || hooks !== "off")
    const isClaimed = !(name in pending)
    if (options.on?.includes(name) === true || (drawn && isClaimed)) on.add(name)
  }
  const ofLater = new Map<FaultClass, number>()
  for (const name of later) {
    const own = chance(seed, `class ${name}`)
    const isOn = own.chance(laterRare[name] ?? laterShare) && !(name in pending)
    ofLater.set(name, own.next())
    if (options.on?.includes(name) === true || isOn) on.add(name)
  }
  /** The rate of one of these classes: its share of the answers or statements that it can affect. */
  const laterRate = (name: FaultClass, least: number, most: number) =>
    on.has(name) ? least * (most / least) ** (ofLater.get(name) ?? 0) : 0
  for (const name of options.off ?? []) on.delete(name)
  if (options.only !== undefined) for (const name of on) if (!options.only.includes(name)) on.delete(name)
  // Which of two programs rewrites values that another catalogue has put elsewhere is undefined.
  const isOfPrograms = (["G1", "G2"] as const).some((name) => options.on?.includes(name))
  if (on.has("G3")) for (const name of isOfPrograms ? (["G3"] as const) : (["G1", "G2"] as const)) on.delete(name)
  const has = (name: FaultClass) => on.has(name)
  /** Draws the rate of a class, also of one that is off: its rate is 0. */
  const drawsFrom = (stream: Chance) => (name: FaultClass, least: number, most: number) => {
    const drawn = least * (most / least) ** stream.next()
    return has(name) ? drawn : 0
  }
  const [share, often] = [drawsFrom(draw), drawsFrom(around)]
  const rates = (name: FaultClass, faults: ReadonlyArray<NetworkFault>): Array<readonly [NetworkFault, number]> => {
    const drawn = share(name, 0.01, 0.15)
    return has(name) ? faults.map((fault) => [fault, drawn / faults.length] as const) : []
  }
  const cursors = draw.chance(0.3) ? 2 : 1
  const resources = [
    ...Array.from({ length: cursors }, () => draw.pick(withCursor)),
    ...(draw.chance(0.45) ? [draw.pick(without)] : [])
  ]
  /** At least a third of the safety phase, and at the end none. */
  const refusalOf = (paths: ReadonlyArray<string>, safety: number): Later["refusal"] => {
    // Not with webhooks: how long a refused read of an event is repeated is not drawn.
    if (!has("S3r") || hooks !== "off") return null
    const own = chance(seed, "refusal")
    const from = own.next() * 0.4
    return {
      resource: own.pick(paths),
      from: from * safety,
      until: (from + 0.3 + own.next() * 0.3) * safety,
      fault: own.pick(["S3r forbidden", "S3r unauthorized", "S3r redirect"])
    }
  }
  const paging = has("Pp") ? draw.pick(["page", "offset"]) : has("Pl") || has("Pb") ? "link" : "cursor"
  const pageSize = draw.skewed(2, 14) + (has("S4e") ? 12 : 0)
  const seconds = draw.integer(30, 100)
  const chosen = has("S4e")
    ? ["areas"]
    : [...new Set(has("CH") ? [...family, ...resources.filter((path) => !without.includes(path))] : resources)]
  // Services check all the time, so a shorter phase takes as long to simulate.
  const safety = (hooks === "off" ? seconds : Math.round(seconds * 0.6) * (has("W13") ? 3 : 1)) * 1_000_000
  return {
    seed,
    on,
    companies: draw.chance(0.15) || has("G4") ? 2 : 1,
    resources: chosen,
    pageSize,
    batchRecordsMax: draw.skewed(2, 40),
    concurrency: draw.integer(1, 3),
    requestsPerMinute: draw.pick([60, 120, 600, 600]),
    dialect: {
      paging,
      itemsKey: has("Pb") ? "bare" : draw.pick(["data", "data", "results", "items", "resource"]),
      syncedThrough: !has("S8"),
      modifiedSince: has("Pe") ? "exclusive" : "inclusive",
      pageSizes: has("S10s") ? draw.integer(1, 1_000_000) : null,
      tieOrder: has("Pt") ? draw.integer(1, 1_000_000) : null,
      dateForm: has("Pd") ? draw.pick(["timestamp", "seconds"]) : "mixed",
      extraFields: has("S12") ? draw.integer(1, 1_000_000) : null,
      keyOrder: draw.chance(0.3) ? draw.integer(1, 1_000_000) : null,
      cancelTrue: draw.pick(["catalogue", "includes", "only"]),
      retryAfter: draw.pick(["seconds", "date"]),
      etag: draw.chance(0.5)
    },
    safety,
    cycleEvery: draw.skewed(4, 30) * 1_000_000,
    processes: has("C4") || has("O1") ? 2 : 1,
    network: [
      ...rates("S1", ["S1 server error"]),
      ...rates("S2", ["S2 rate limited"]),
      ...(has("S2h") ? [["S2h huge wait", 0.02] as const] : []),
      ...rates("S3", ["S3 unauthorized", "S3 forbidden"]),
      ...rates("S4", ["S4 garbage", "S4 empty", "S4 error envelope"]),
      ...(has("S4e") ? [["S4e empty list", 0.12] as const] : []),
      ...rates("S10", ["S10 token expired"]),
      ...rates("N1", ["N1 refused"]),
      ...rates("N2", ["N2 reset before", "N2 reset in body"]),
      ...rates("N3", ["N3 black hole"]),
      ...rates("N4", ["N4 answer lost"]),
      ...rates("N5", ["N5 slow"]),
      ...rates("N7", ["N7 truncated"]),
      ...rates("N15", ["S4 html"]),
      ...rates("N16", ["N16 redirect"])
    ],
    delayMax: draw.skewed(20_000, 3_000_000),
    database: {
      sqlstates: has("D4") ? ["40001", "40P01", "55P03", "53100", "57014", "25006"] : [],
      errorRate: share("D4", 0.002, 0.02),
      lostRate: share("D2", 0.002, 0.02),
      commitUnknownRate: share("D3", 0.05, 0.4),
      slowRate: share("D12", 0.005, 0.05),
      connectRate: share("D2", 0.01, 0.1)
    },
    killRate: share("C1", 0.002, 0.02),
    pauseRate: share("C3", 0.001, 0.01),
    stopRate: share("C2", 0.001, 0.006),
    lockLossRate: share("D8", 0.003, 0.02),
    restarts: has("D1") ? draw.integer(1, 2) : 0,
    records: draw.skewed(1, 24) + (has("S4e") ? 60 : 0),
    writes: draw.skewed(8, 45),
    rewriteShare: has("S5") ? 0.6 : has("W5") ? 0.3 : 0.15,
    overlap:
      has("S7") || has("W5")
        ? draw.pick([2_000_000, 20_000_000, overlapDefault])
        : draw.pick([0, 0, 2_000_000, overlapDefault]),
    sweepEvery: has("CH") ? 3_600_000_000 : 0,
    sharedBudget: draw.chance(0.4),
    skews: [0, 1].map(() => (has("K1") ? draw.pick([-1, 1]) * draw.skewed(1_000, 400 * 86_400_000) * 1000 : 0)),
    hooks,
    pushes: "off",
    pushing: null,
    webhooks: {
      cycleEvery: around.skewed(2, 6) * 1_000_000,
      failureThreshold: has("W12") ? around.pick([4, 6, 24]) : 24,
      checkEvery: around.skewed(10, 24) * 1_000_000,
      // The minimum that a configuration allows: longer than the source's log reports an event.
      keep: has("R8") ? keepLeast : 30 * day,
      // In some seeds, all of them.
      dropRate: has("W1") ? around.pick([0.1, 0.3, 0.6, 1]) : 0,
      copyRate: often("W2", 0.05, 0.5),
      proxyRate: often("W3", 0.05, 0.5),
      forgeRate: often("W8", 0.1, 0.7),
      replayRate: often("W7", 0.1, 0.5),
      slowRate: often("R5", 0.05, 0.3),
      lostRate: often("R2", 0.05, 0.3),
      // Long enough that events processed before the sleep are forgotten after it.
      asleep: has("R8") ? keepLeast + around.skewed(hour, 2 * day) : has("R1") ? around.skewed(1_000_000, 4 * day) : 0
    },
    later: {
      emptyRate: laterRate("S4m", 0.03, 0.3),
      unmarkedRate: laterRate("S8p", 0.05, 0.6),
      replicaRate: laterRate("S16", 0.03, 0.3),
      cacheRate: laterRate("N9", 0.02, 0.2),
      backs: hooks === "off" ? Math.round(laterRate("S18", 1, 5)) : 0,
      endRate: laterRate("D5", 0.002, 0.015),
      fullRate: laterRate("D6", 0.002, 0.015),
      // An older release would create a lost table without a column that the checkers read.
      tableLosses: hooks === "off" && on.has("G2") ? 0 : Math.round(laterRate("T1", 1, 4)),
      // An older release neither notices a restore nor writes a column that the copy has.
      warehouseRestores: hooks === "off" && !on.has("G2") ? Math.round(laterRate("T2", 1, 3)) : 0,
      restores: hooks === "off" && on.has("S14") ? 1 : 0,
      periods: periodsOf(seed, hooks === "off" && on.has("G2"), hooks === "off" && on.has("G1")),
      // A release that does not know identities never ran with a clock that was set back.
      clockStep: hooks === "off" && !on.has("G2") ? laterRate("K3", 0.25, 1) : 0,
      refusal: refusalOf(options.overrides?.resources ?? chosen, options.overrides?.safety ?? safety),
      rules: [],
      sameNumber: has("G4") ? sameNumberOf(seed) : null
    },
    ...options.overrides
  }
}

/** The end of the safety phase, from its beginning. */
export const safetyEnds = ({ safety, webhooks: { asleep } }: Plan): number => safety + asleep

/** The place of the long sleep in the safety phase, as shares of it. */
const sleeps = { from: 0.45, to: 0.6 } as const

/** The beginning and end of the long sleep; null when there is none. */
export const sleepOf = (drawn: Plan): { readonly from: number; readonly to: number } | null =>
  drawn.webhooks.asleep === 0
    ? null
    : { from: sleeps.from * drawn.safety, to: sleeps.to * drawn.safety + drawn.webhooks.asleep }

/** The moment of a share of the safety phase, from its beginning. The sleep is stretched. */
export const momentOf = (drawn: Plan, share: number): number => {
  const sleep = sleepOf(drawn)
  if (sleep === null || share < sleeps.from) return share * drawn.safety
  if (share >= sleeps.to) return share * drawn.safety + drawn.webhooks.asleep
  return sleep.from + ((share - sleeps.from) / (sleeps.to - sleeps.from)) * (sleep.to - sleep.from)
}

/** The plan as readable lines. */
export const describe = (drawn: Plan): string => {
  const { on, ...rest } = drawn
  return `classes on: ${[...on].join(" ")}\n${JSON.stringify(rest)}`
}

/** Every resource that a plan may draw. */
export const resourcesUsed: ReadonlyArray<string> = [...new Set([...withCursor, ...without, ...family])]

/** The settings of webhooks without faults. */
export const undisturbed = {
  dropRate: 0,
  copyRate: 0,
  proxyRate: 0,
  forgeRate: 0,
  replayRate: 0,
  slowRate: 0,
  lostRate: 0,
  asleep: 0
} as const
