/**
 * The facts and decisions behind an error code at one place.
 *
 * A place that leaves a member out has any value there. Every place that matches adds its ids.
 */
import type { Ids } from "./codes.ts"

export interface Place {
  /** Error codes, separated by spaces. */
  readonly code: string
  /** Paths of resources, separated by spaces; `webhooks` for subscriptions. */
  readonly resource?: string
  /** What the request does, separated by spaces: `list create batch retrieve update cancel special`. */
  readonly action?: string
  /** The last part of the path of a special endpoint. */
  readonly special?: string
  /** The field that the error names. */
  readonly field?: RegExp
  readonly ids: Ids
}

const writes = "create batch update"

const parameters: ReadonlyArray<Place> = [
  { code: "invalid_request", action: "list", field: /^limit$/, ids: ["LIM-13 EP-19", "A-03"] },
  { code: "invalid_request", field: /^(?:cursor|page|offset)$/, ids: ["EP-19", "A-02"] },
  { code: "invalid_request", action: "list", field: /^(?!limit$|cursor$|page$|offset$)/, ids: ["", "A-16"] },
  { code: "invalid_type", action: "list", ids: ["EP-17", "A-10"] },
  { code: "invalid_type", field: /^modifiedsince$/, ids: ["EP-16", "A-06"] },
  { code: "invalid_enum", field: /^cancel$/, action: "list", ids: ["EP-15", "A-10"] },
  { code: "invalid_enum", field: /^include$/, ids: ["EP-13 VER-04", "A-11"] },
  { code: "unknown_parameter", action: "list", ids: ["EP-18", ""] },
  { code: "unknown_parameter", action: "list", field: /^modifiedsince$/, ids: ["EP-16 EP-21", ""] },
  {
    code: "unknown_parameter",
    action: "list",
    field: /^modifiedsince$/,
    resource: "producttypetaxes vendororderfroms assetcategories itemcomparisongroups",
    ids: ["EP-20", "I-03 X-02"]
  },
  { code: "invalid_request", field: /^Idempotency-Key$/, ids: ["EP-01", "B-05"] }
]

const bodies: ReadonlyArray<Place> = [
  { code: "invalid_request", action: writes, ids: ["EP-12 ERR-06", "D-02 D-03"] },
  { code: "invalid_request", action: "create batch", ids: ["EP-06", "D-07"] },
  { code: "unknown_parameter", action: writes, ids: ["EP-12", "D-03"] },
  {
    code: "unknown_parameter",
    action: writes,
    resource: "shipments invoicelines payments orderdeposits apbilllines",
    ids: ["EP-14", "F-14"]
  },
  { code: "unknown_parameter", action: "update", resource: "shipments", field: /^carrierservice$/, ids: ["", "I-11"] },
  { code: "unknown_parameter", field: /^entrydate$/, ids: ["", "F-12 X-16"] },
  { code: "unknown_value", action: `${writes} special`, ids: ["FIELD-02", "F-08"] },
  { code: "unknown_value", action: writes, field: /^custom_fields/, ids: ["FIELD-16", "F-17"] },
  { code: "unsupported_value", field: /^custom_fields/, ids: ["", "F-17"] },
  { code: "duplicate", action: "create batch", ids: ["EP-06", "F-05 F-06"] },
  { code: "duplicate", action: "update", ids: ["", "F-06 F-07"] },
  { code: "duplicate", action: "batch", ids: ["", "G-06"] },
  { code: "duplicate", field: /^externalid$/, ids: ["FIELD-12", "F-04"] },
  { code: "insufficient_scope", action: writes, ids: ["SCOPE-03", ""] },
  { code: "insufficient_scope", action: "update", ids: ["", "F-11"] },
  { code: "insufficient_scope", action: "cancel", ids: ["SCOPE-04", ""] },
  { code: "insufficient_scope", resource: "orders", action: writes, ids: ["", "C-12"] },
  { code: "insufficient_scope", resource: "serviceordertimes", ids: ["", "C-09"] },
  { code: "rule_violation", field: /(?:amount|quantity|qty|price)/, ids: ["", "D-05"] },
  { code: "rule_violation", action: "update", ids: ["", "D-13 D-14"] }
]

const records: ReadonlyArray<Place> = [
  { code: "not_found", action: "retrieve special", ids: ["EP-08 GEN-06", "D-06"] },
  { code: "not_found", action: "update", ids: ["EP-09 GEN-06", "D-06"] },
  { code: "not_found", action: "cancel", ids: ["EP-10 GEN-06", "I-14"] },
  { code: "not_found", action: "none", ids: ["", "C-13"] },
  { code: "unknown_value", action: "cancel", ids: ["", "I-14 X-09"] },
  { code: "method_not_allowed", resource: "me", ids: ["SPECIAL-10", "C-05"] },
  { code: "method_not_allowed", resource: "teamprojectreminders", ids: ["", "I-02"] },
  { code: "order_already_billed", resource: "orders", ids: ["", "K-04"] },
  { code: "order_already_billed", resource: "serviceordertimes", ids: ["SPECIAL-09", ""] },
  { code: "cannot_cancel", resource: "payments", ids: ["WRITE-14", ""] },
  { code: "cannot_cancel", resource: "shipments", ids: ["WRITE-06", "I-13"] },
  { code: "shipment_already_invoiced", resource: "shipments", action: "cancel", ids: ["WRITE-06", "I-13"] },
  { code: "period_closed", resource: "payments", action: "cancel", ids: ["WRITE-14", ""] },
  {
    code: "rule_violation",
    resource: "payments",
    action: "create batch",
    field: /^invoiceid$/,
    ids: ["STATE-10", "I-15 X-32"]
  },
  { code: "rule_violation", resource: "payments", action: "create batch", field: /^amount$/, ids: ["", "I-16"] },
  { code: "rule_violation", resource: "shipments", action: "create batch", ids: ["WRITE-03", "I-10"] },
  { code: "rule_violation", resource: "shipments", action: "update", ids: ["WRITE-05", "I-12"] },
  { code: "unknown_value", resource: "shipments", action: "create batch", field: /^lines/, ids: ["WRITE-01", "I-09"] },
  { code: "unknown_value", special: "packages", ids: ["SPECIAL-01", "I-14 X-09"] },
  { code: "unknown_value", special: "tax", ids: ["SPECIAL-06", "I-14 X-09"] },
  { code: "not_implemented", resource: "shipments", special: "invoice", ids: ["SPECIAL-02", "J-02"] },
  { code: "nothing_to_invoice", resource: "orders", ids: ["STATE-06 SPECIAL-03", "J-03"] },
  { code: "cannot_invoice_quote", resource: "orders", ids: ["SPECIAL-03", "J-03"] },
  {
    code: "invoice_already_posted apbill_already_posted period_closed",
    special: "post",
    ids: ["STATE-09 SPECIAL-08", "J-07"]
  },
  { code: "invalid_type", resource: "areas", field: /^applicationfee$/, ids: ["", "F-03"] }
]

const subscriptions: ReadonlyArray<Place> = [
  { code: "unsupported_value", resource: "webhooks", ids: ["EVT-05 WEBHOOK-02 WEBHOOK-14", ""] },
  { code: "unknown_value", resource: "webhooks", ids: ["EVT-03 EVT-04 WEBHOOK-14", "H-01 H-02"] },
  { code: "unknown_parameter", resource: "webhooks", action: "update", ids: ["WEBHOOK-16", "H-11"] },
  { code: "invalid_request", resource: "webhooks", action: "update", ids: ["WEBHOOK-16", "D-10"] },
  { code: "invalid_request", resource: "webhooks", action: "create", ids: ["WEBHOOK-14", ""] },
  { code: "invalid_request", resource: "webhooks", field: /^(?:url|description)$/, ids: ["LIM-09", ""] },
  { code: "not_found", resource: "webhooks", ids: ["WEBHOOK-15 EVT-02", "H-04"] },
  { code: "rule_violation", resource: "webhooks", ids: ["", "H-13"] },
  { code: "rate_limited", resource: "webhooks", special: "test", ids: ["LOG-03 LIM-03", "E-05"] },
  { code: "rate_limited", special: "", ids: ["LIM-02", "E-01"] }
]

export const places: ReadonlyArray<Place> = [...parameters, ...bodies, ...records, ...subscriptions]
