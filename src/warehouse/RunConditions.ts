/**
 * SQL conditions on rows of `tributary.runs`: which runs make a resource fresh.
 *
 * A run that reads children of one parent, or single records, does not read the other records, so that it meets none of
 * these conditions. Each condition takes the alias of the table, or its name.
 */

/** Runs that follow the source: they see every change of the resource. */
const followsSource = (run: string): string => `${run}.lane = 'live' and ${run}.kind in ('full', 'incremental')`

/** Runs that make a resource fresh: every record was landed. The view `tributary.freshness` has the same condition. */
export const makesFresh = (run: string): string => `${followsSource(run)} and ${run}.status = 'done'`

/** Runs that read to the end, even if records are in quarantine. Tasks and the inbox look for these before they read again. */
export const readToEnd = (run: string): string => `${followsSource(run)} and ${run}.status in ('done', 'quarantined')`
