/** The settings of pushes in tests. */
import * as Duration from "effect/Duration"
import type { PushSettings } from "../../src/outbox/PushSession.ts"

export const settingsDefault: PushSettings = {
  batchRecordsMax: Number.POSITIVE_INFINITY,
  useBatch: true,
  keyAgeMax: Duration.hours(23),
  concurrency: 4
}
