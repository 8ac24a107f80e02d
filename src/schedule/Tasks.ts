/**
 * The tasks of `tributary.schedule`: what is due, who runs it, and what people ask for.
 */
export type TaskKind = "sync" | "backfill"
export type TaskStatus = "done" | "quarantined" | "failed" | "skipped" | "stopped"

/** A task as it stands. */
export interface Task {
  readonly company: string
  readonly resource: string
  readonly kind: TaskKind
  /** In words; null when it runs only if asked. */
  readonly schedule: string | null
  readonly promiseMs: number | null
  readonly nextAt: Date | null
  readonly pausedAt: Date | null
  readonly pausedBy: string | null
  readonly askedAt: Date | null
  readonly askedBy: string | null
  readonly askedFull: boolean
  readonly since: string | null
  readonly until: string | null
  /** Whether a process runs it at this moment: its lease has not run out, by the warehouse's clock. */
  readonly isRunning: boolean
  readonly beganAt: Date | null
  readonly endedAt: Date | null
  readonly status: TaskStatus | null
  readonly runId: bigint | null
  readonly failures: number
  readonly error: string | null
  readonly remedy: string | null
}
