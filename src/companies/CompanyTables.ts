/**
 * The tables of the control plane with rows of companies, and what happens to the rows when a company moves to another
 * warehouse or is erased. A test compares this list with the tables that exist.
 */

/**
 * `moves`: the rows go to the other warehouse, and are deleted here. `deleted`: they are deleted here, and the other
 * warehouse makes its own. `stays`: they stay here, also when the company is erased.
 */
type Treatment = "moves" | "deleted" | "stays"

/** With the reason where the rows do not move. */
export const companyTables: Readonly<Record<string, Treatment | readonly [Treatment, string]>> = {
  "tributary.activity": ["deleted", "the charts of this warehouse; serve writes those of the other one"],
  "tributary.alert_conditions": ["deleted", "observed anew"],
  "tributary.alert_messages": ["deleted", "about conditions that are deleted"],
  "tributary.alert_silences": ["stays", "a setting of a person, which ends by itself"],
  "tributary.change_batches": "moves",
  "tributary.change_endpoints": ["stays", "a setting of a person about the receiver of changes"],
  "tributary.change_retries": ["deleted", "endpoints do not move, and neither do the changes that wait for them"],
  "tributary.checkpoints": "moves",
  "tributary.companies": "moves",
  "tributary.comparisons": ["stays", "about the installation"],
  "tributary.company_settings": ["stays", "stored and deleted by statements of their own, with the token sealed anew"],
  "tributary.company_states": ["deleted", "counted anew"],
  "tributary.delivery_gaps": "moves",
  "tributary.event_checks": "moves",
  "tributary.field_findings": "moves",
  "tributary.inbox": "moves",
  "tributary.invariant_states": ["deleted", "evaluated anew"],
  "tributary.outbox": "moves",
  "tributary.push_requests": "moves",
  "tributary.pushes": "moves",
  "tributary.quarantine": "moves",
  "tributary.receipts": ["stays", "what was done here, by whom and when"],
  "tributary.refetch_requests": "moves",
  "tributary.row_counts": "moves",
  "tributary.runs": "moves",
  "tributary.scan_ids": "moves",
  "tributary.scans": "moves",
  "tributary.subscriptions": "moves",
  "tributary.tasks": "moves",
  "tributary.unknown_fields": "moves",
  "tributary.violations": ["deleted", "evaluated anew"],
  "tributary.webhook_secrets": "moves"
}

/** The tables whose rows are treated in this way. */
export const tablesThat = (treatment: Treatment): ReadonlyArray<string> =>
  Object.entries(companyTables).flatMap(([table, one]) =>
    (typeof one === "string" ? one : one[0]) === treatment ? [table] : []
  )

/** The columns by which a row belongs to a company: its name, or its number. */
export const companyColumns = ["company", "company_id", "company_number"] as const

/** SQL: an array of texts. */
export const arraySql = (values: ReadonlyArray<string>): string =>
  `array[${values.map((one) => `'${one}'`).join(", ")}]`
