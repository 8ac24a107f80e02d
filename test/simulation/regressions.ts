/**
 * Every seed that ever failed, with its cause. `npm run simulate -- --regressions` runs them, and so does each CI run.
 *
 * A seed is never removed. If the plan changes what it draws, it is one more seed like any other. Fault classes that
 * were added after it are off in it.
 */
import type { FaultClass } from "./Plan.ts"

/** A seed and what it was about. */
interface Entry {
  readonly cause: string
  /** The classes of `later` (`Plan.ts`) that existed when it failed. */
  readonly later?: ReadonlyArray<FaultClass>
  /** Classes that were requested for it. */
  readonly on?: ReadonlyArray<FaultClass>
  /** The planted bug whose plan the seed had; the code is without the bug. */
  readonly planOf?: string
}

type Kind = "syncs" | "webhooks only" | "webhooks beside" | "pushes only" | "pushes beside"

export interface Regression extends Entry {
  readonly kind: Kind
  readonly seed: number
}

const upToW13: ReadonlyArray<FaultClass> = [
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
  "W13"
]

const byKind: Readonly<Record<Kind, Readonly<Record<number, Entry>>>> = {
  syncs: {
    795: { cause: "a list of subscriptions that was empty by mistake" },
    854: { cause: "a CI run was red" },
    885: { cause: "a CI run was red" },
    1528: { cause: "a CI run was red" },
    1664: { cause: "a CI run was red" },
    1771: { cause: "a subscription's secret counted as changed when it was not" },
    1838: { cause: "a statement that waited for a lock read an old time" },
    2636: { cause: "an abandoned full scan delayed the repair of a gap for weeks" },
    900096: { cause: "a full scan that the mass-delete guard stopped resolved events" },
    900373: { cause: "a removal that no event reports was expected by webhooks alone" },
    3000032: { cause: "a checker confused a full scan that the mass-delete guard stopped with a lost one" },
    3000070: { cause: "of two reads that overlapped, the later one was answered earlier" },
    3500002: {
      cause: "the session with a run's locks ended while the run waited for the source",
      later: ["S8p", "D5"]
    },
    7353023: {
      cause: "a full scan deleted a row that is newer than the answer of a cache",
      later: ["N9", "S14"],
      on: ["S14"]
    },
    75263858: { cause: "a checker confused a resumed scan with one that the mass-delete guard stopped" },
    75263885: { cause: "a checker confused a resumed scan with one that the mass-delete guard stopped" },
    7198008: {
      cause: "a page was empty by mistake again because the true answer in between was cut off",
      later: ["S4m", "S8p", "D6"],
      on: ["T1"]
    },
    20821064: {
      cause: "a statement of the transaction that had locked a checkpoint waited for the same checkpoint",
      later: ["S8p", "S16", "D5", "T1"],
      on: ["K3"]
    },
    30499020: {
      cause: "a pause in the shared budget lasted as long as the step of the clock; no longer drawn together",
      later: ["S8p", "D6"],
      on: ["K3"]
    },
    90000176: {
      cause: "an earlier page of a list without a position, read again with a smaller page size, showed an older record"
    },
    90000548: {
      cause: "a full scan kept records in quarantine that were quarantined in the future of a clock that was set back",
      later: ["S8p", "S18", "N9", "D5", "T1"],
      on: ["S14", "K3"]
    },
    90000355: {
      cause: "the database's virtual time was not set before a pause of the budget was reported",
      later: ["S18", "N9", "T2"]
    },
    95000165: {
      cause: "an older version was not counted where the row had been read before the warehouse clock was set back",
      on: ["K3"]
    },
    96000611: {
      cause: "a backfill of an older release looked at the catalogue's generation before it raised the fence",
      later: ["D6"],
      on: ["G2"]
    },
    96000994: {
      cause: "a full scan kept refetch requests that were made in the future of a clock that was set back",
      later: ["S4m", "S8p", "S18"],
      on: ["K3", "G1"]
    },
    71468595: {
      cause:
        "a landing during which the clock was set back compared every row from its future as older than its own read",
      later: ["S16", "S18", "N9", "D5"],
      on: ["K3"]
    },
    97000422: {
      cause: "a checker applied the limit of one subscription's test deliveries to every request",
      later: ["S4m", "S16", "D5", "D6"]
    },
    98000163: {
      cause: "a checker compared a row that a person had deleted with the version that came back",
      later: ["S2h", "S8p", "S18", "N9", "D6", "T1", "S14"]
    },
    94601161: {
      cause:
        "a checker assumed a newer backfill as confirmed while an older landing still had the live checkpoint locked",
      later: ["S2h", "S16", "T1", "S14", "G2"]
    },
    94602097: {
      cause: "a cached answer of another page size was older than a removal that had been landed",
      later: ["S4m", "S8p", "N9", "G1", "K3"]
    },
    99100199: {
      cause: "a first load that the mass-delete guard had stopped counted as loaded, and no sync followed",
      later: ["S4m", "S8p", "S16", "N9", "D5", "D6", "S14", "T2"]
    },
    99100244: {
      cause: "a scan that was answered with an earlier list was expected to show the whole resource",
      later: ["S16", "N9", "T1", "G1", "T2"]
    },
    261463340: {
      cause: "after the warehouse's clock was set back, an earlier list deleted a record whose stamp was in its future",
      later: ["S18", "N9", "K3"]
    },
    261463411: {
      cause: "a rotation counted as done though an intermediary had answered it, and the source never had the secret",
      later: ["S4m", "S8p", "S16", "S18", "D6", "S14", "G2", "K3"]
    },
    164695056: {
      cause: "reads of a backfill and a sync overlapped, and two versions showed the same second",
      later: ["S18", "T1", "G1", "G2"]
    },
    164695181: {
      cause: "an empty list of a parent's children, given by mistake, counted at once",
      later: ["S4m", "N9", "D5", "G1"]
    },
    55351121: {
      cause: "the Retry-After of a 503 for one subscription did not pause the other requests of the token",
      later: ["S16", "D5", "T1"]
    },
    161126984: {
      cause: "a list was answered again that had been answered at the very instant at which a record was created",
      later: ["S4m", "S8p", "N9", "D5", "S14"]
    },
    274889416: {
      cause: "a refetch request that was made while the clock was set back looked older than the full scan in progress",
      later: ["N9", "K3"]
    },
    79239069: {
      cause: "a checker did not know that a version which the source stamped earlier gives way to the one before it",
      later: ["S8p", "S18", "N9", "G2"]
    },
    951124402: {
      cause: "a checker expected refetch requests to be answered while the mass-delete guard stopped the scan",
      later: ["S4m", "S14", "T2"]
    },
    951124616: {
      cause: "a checker did not see that the guard had stopped a scan that also showed older versions",
      later: ["S18", "T1", "S14", "G1", "K3"]
    },
    951125135: {
      cause:
        "a parent was loaded again while a first scan of its children was in progress, which had read old children",
      later: ["S8p", "S16", "D5", "T1", "K3"]
    },
    961124339: {
      cause: "a slow request of a killed process created a second subscription after the last ensure",
      later: ["S8p", "N9", "T1", "G1"]
    },
    274889702: {
      cause: "a record that became visible late had the id of a record that each company has, and its stamp went back",
      later: ["S4m", "D6", "K3", "T2"]
    },
    51000282: {
      cause: "a checker took a run that found nothing, and began before a table was truncated, for its repair",
      later: ["S4m", "N9", "T1", "S14", "T2"],
      on: ["O1"]
    },
    61501132: {
      cause:
        "a page that was read once more to prove that no record moved came from a replica that was behind, and proved nothing",
      later: ["S4m", "S8p", "S16", "D5", "D6"],
      on: ["O1"]
    },
    100364878: {
      cause: "the change feed did not begin a table that had records at its first checkpoint",
      later: ["D5", "K3", "T2"]
    },
    138521530: {
      cause:
        "of two reads that overlapped, the later one was answered earlier, and the checker of the history forbade it",
      later: upToW13
    },
    1800000197: {
      cause:
        "a list that was empty by mistake deleted the few rows that no other run had landed, below the mass-delete guard",
      later: upToW13
    },
    2911300047: {
      cause:
        "a page that was read before its rows were deleted by hand landed after that, and overlapped their versions",
      later: [...upToW13, "S3r"]
    },
    3129110816: {
      cause:
        "rows that continued their history after a restore began when an earlier version ended, which was in the future once the warehouse's clock was set back",
      later: [...upToW13, "S3r"]
    },
    3129121537: {
      cause: "where webhooks are alone, nobody synced after a history was dropped during the first sync",
      later: [...upToW13, "S3r"]
    },
    3129121758: {
      cause: "where webhooks are alone, nobody synced after a history was dropped",
      later: [...upToW13, "S3r"]
    },
    3129216024: {
      cause:
        "rows were deleted and filled in beside a full scan that had landed some of them, and the simulation took its end for the repair, which is that of the next run",
      later: [...upToW13, "S3r", "G3"]
    },
    3129222144: {
      cause: "a restart of the server was not over when everything was healed",
      later: [...upToW13, "S3r", "G3"]
    },
    3130153396: {
      cause: "a deletion by hand deleted no version, and the simulation took it for a loss",
      later: [...upToW13, "S3r", "G3"]
    },
    3130134036: {
      cause: "a row of a backfill that ended in the future, before the clock was set back, was kept by every full scan",
      later: [...upToW13, "S3r", "G3", "G4"]
    },
    3130074151: {
      cause: "a restored control plane had no mark of the rows that were deleted and filled before",
      later: [...upToW13, "S3r", "G3"]
    },
    3130074617: {
      cause:
        "more than half of the records left the filters between two scans that the guard did not stop, and no person accepted that",
      later: [...upToW13, "S3r", "G3"]
    },
    3130111335: {
      cause: "a process took the end of a pause by a clock that was set forward for its end by a person",
      later: [...upToW13, "S3r", "G3", "G4"]
    },
    3130361609: {
      cause:
        "a list that was empty by mistake twice was believed, since the one record that was asked for had left the filter",
      later: [...upToW13, "S3r", "G3", "G4"]
    },
    3136076830: {
      cause:
        "a run made the first checkpoint of its company while another process applied privacy rules, and was not ended",
      later: [...upToW13, "S3r", "G3", "G4"]
    },
    3095741574: {
      cause:
        "more than half of the records left the filters after the source was restored, and the checker expected their deletion without a person",
      later: [...upToW13, "S3r", "G3", "G4"]
    },
    3095742074: {
      cause: "a process under replaced privacy rules made a missing table, whose columns contradicted the newer rules",
      later: [...upToW13, "S3r", "G3", "G4"]
    }
  },
  "pushes only": {
    274887347: { cause: "a row inserted by SQL waited outside the simulated time for the transaction of a process" },
    900094: { cause: "a process slept over the answer that the fence is its own" }
  },
  "pushes beside": {
    910060: { cause: "a file whose push had died after healing was not pushed again" },
    3500033: { cause: "a full scan deleted a record that a push had created while it read" },
    94601110: { cause: "a checker compared what a push had said with rows that joined it later" },
    139531788: { cause: "a pause began between the permit of a write and its sending" }
  },
  "webhooks only": {
    27449803: {
      cause: "a process that ended left the connection of a keeper that hung",
      later: ["S4m", "S16", "D5", "D6", "T1"],
      on: ["O1"]
    },
    2: {
      cause: "two tasks sent the same request at the same time, and the checker took the second for a repetition",
      planOf: "outage-counts-as-attempt"
    }
  },
  "webhooks beside": {
    911290012: {
      cause:
        "the session with a run's locks ended because Postgres had no memory, and the checker took the run for gone",
      later: upToW13
    }
  }
}

export const regressions: ReadonlyArray<Regression> = Object.entries(byKind).flatMap(([kind, entries]) =>
  Object.entries(entries).map(([seed, entry]) => ({ kind: kind as Kind, seed: Number(seed), ...entry }))
)
