/**
 * The learned overlap, in SQL: how far before its cursor a scan must begin because rows became visible late.
 *
 * Promise: it is twice as long as the latest row was late, at most a day, and halves for each week since. A row that is
 * as late again renews it; without one it falls below the configured overlap and no longer counts.
 */

/** The current overlap in milliseconds, of the checkpoint with this alias. Only whole days count. */
export const learnedOverlap = (alias: string): string =>
  `(${alias}.learned_overlap_ms * power(0.5, greatest(0, floor(coalesce(extract(epoch from tributary.now() - ${alias}.overlap_learned_at), 0) ` +
  `/ 86400)) / 7))::bigint`
