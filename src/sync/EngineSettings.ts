/**
 * The settings of the sync engine and their defaults. It imports no part of the engine, since every command that reads the
 * configuration loads it.
 */
import * as Duration from "effect/Duration"
import type { ScanSettings } from "../extract/Scan.ts"

/** The settings of scans and of the mass-delete guard, from the configuration. */
export interface EngineSettings extends ScanSettings {
  /** A full scan deletes at most this share of the rows (0 to 1), unless deletions are accepted. */
  readonly deletionsShareMax: number
}

export const engineDefault: EngineSettings = {
  overlap: Duration.seconds(300),
  fullScanInterval: Duration.days(7),
  cursorlessScanInterval: Duration.zero,
  deletionsShareMax: 0.5
}

/** Approximate number of records landed in one transaction. */
export const batchRecordsMaxDefault = 2_500

/** The freshness target without configuration. */
export const freshnessDefault = Duration.minutes(15)
