/** The facts and decisions behind each error code, wherever it is answered. */

/** Ids of facts, and ids of our decisions; separated by spaces. */
export type Ids = readonly [facts: string, decisions: string]

export const byCode: Readonly<Record<string, Ids>> = {
  unauthorized: ["AUTH-12 AUTH-01 AUTH-18", "C-01 C-02"],
  token_revoked: ["AUTH-13 AUTH-04 AUTH-18", "C-03"],
  token_expired: ["AUTH-14 AUTH-03 AUTH-18", "C-03"],
  forbidden: ["AUTH-16 AUTH-09", "C-02"],
  insufficient_scope: ["AUTH-15 AUTH-10 AUTH-19 SCOPE-24", "C-04"],
  feature_not_licensed: ["AUTH-17", "C-08"],
  record_limit_reached: ["CODE-01 LIM-11", ""],
  invalid_json: ["CODE-02", "D-08"],
  invalid_request: ["CODE-03", ""],
  invalid_type: ["CODE-04", "D-02"],
  unknown_parameter: ["CODE-05", ""],
  invalid_enum: ["CODE-06", ""],
  batch_too_large: ["CODE-07 LIM-01 EP-07", ""],
  invalid_precision: ["CODE-08 FIELD-06 LIM-12", "D-04"],
  not_found: ["CODE-09", ""],
  method_not_allowed: ["CODE-10 EP-04", "I-01"],
  duplicate: ["CODE-11", ""],
  idempotency_replay: ["CODE-12 EP-02", "B-06 B-07"],
  request_in_progress: ["CODE-13 EP-02", "B-10"],
  stale_record: ["CODE-14 EP-03", "B-01 B-03"],
  not_posted: ["CODE-15 SPECIAL-08", "J-11"],
  cannot_cancel: ["CODE-16 STATE-12", ""],
  line_has_shipped: ["CODE-17", "K-05"],
  line_has_receipts: ["CODE-18", ""],
  order_already_billed: ["CODE-19 STATE-07", ""],
  hours_already_billed: ["CODE-20 STATE-15", ""],
  shipment_already_invoiced: ["CODE-21 STATE-13", ""],
  po_complete: ["CODE-22 STATE-14", "X-20"],
  invoice_already_posted: ["CODE-23 STATE-10", ""],
  apbill_already_posted: ["CODE-24 STATE-11", ""],
  not_batchable: ["CODE-25 SPECIAL-12", "G-07"],
  unknown_value: ["CODE-26", ""],
  ambiguous_value: ["CODE-27 FIELD-02", "F-10"],
  conflicting_reference: ["CODE-28 FIELD-03", ""],
  unsupported_value: ["CODE-29", ""],
  rule_violation: ["CODE-30 ERR-09", ""],
  rate_limited: ["CODE-31 ERR-10", "E-02 E-03 E-04"],
  server_error: ["CODE-32", "D-15"],
  not_implemented: ["CODE-33", "C-13"],
  gl_set_unbalanced: ["RULE-01", ""],
  gl_set_too_short: ["RULE-02", ""],
  period_closed: ["RULE-03", ""],
  shipto_mismatch: ["RULE-04", ""],
  cannot_ship_quote: ["RULE-05 STATE-05", ""],
  shipqty_exceeds_remaining: ["RULE-06 WRITE-02", ""],
  nothing_to_invoice: ["RULE-07", ""],
  distribution_exceeds_total: ["RULE-08", ""],
  deposit_exceeds_order: ["RULE-09", "X-15"],
  cannot_invoice_quote: ["RULE-10 STATE-05", ""],
  hours_require_service_order: ["RULE-11 SPECIAL-09", "X-25"]
}

/** The facts and decisions behind the problems that only the list of an `invalid_request` names. */
export const byProblem: Readonly<Record<string, Ids>> = {
  required: ["EP-12 ERR-06", "D-02 F-13"],
  too_long: ["FIELD-10 LIM-12", "D-01"],
  invalid_type: ["CODE-04", ""],
  invalid_enum: ["CODE-06", ""],
  invalid_precision: ["CODE-08 FIELD-06", ""]
}

/** The facts and decisions behind a value of the wrong form, by the type of its field. */
export const byType: Readonly<Record<string, Ids>> = {
  money: ["FIELD-05", "D-04"],
  qty: ["FIELD-07", "D-04"],
  number: ["FIELD-08", "D-04"],
  boolean: ["FIELD-09", ""],
  date: ["FIELD-11", "F-01"],
  timestamp: ["FIELD-11", "F-01"]
}
