/**
 * SQL conditions on rows of `tributary.runs`: which runs say how fresh a resource is.
 *
 * A run that reads children of one parent, or single records, says nothing of the other records, so that it counts nowhere
 * here. Each condition takes the alias of the table, or its name.
 */

/** Runs that follow the source: they see every change of the resource. */
export const followsSource = (run: string): string => `${run}.lane = 'live' and ${run}.kind in ('full', 'incremental')`

/** Runs that make a resource fresh: every record was landed. Pages, metrics, `doctor` and dbt ask for these. */
export const makesFresh = (run: string): string => `${followsSource(run)} and ${run}.status = 'done'`

/** Runs that read to the end, even if records are in quarantine. Tasks and the inbox ask for these before they read again. */
export const readToEnd = (run: string): string => `${followsSource(run)} and ${run}.status in ('done', 'quarantined')`
