/**
 * The error codes of the service.
 *
 * Promise: the 50 documented codes (AUTH-12..17, CODE-01..33, RULE-01..11), each with its status and condition. The
 * server answers no other code (VER-03).
 */
import type { ErrorCode } from "../../../src/catalogue/Catalogue.ts"

const group =
  (status: number) =>
  (code: string, condition: string): ErrorCode => ({ status, code, condition })
const bad = group(400)
const token = group(401)
const denied = group(403)
const conflict = group(409)
const refused = group(422)

const accessCodes: ReadonlyArray<ErrorCode> = [
  token("unauthorized", "no header, malformed header, or unknown token"),
  token("token_revoked", "token revoked"),
  token("token_expired", "token past its expiry"),
  denied("insufficient_scope", "valid token lacking the needed scope"),
  denied("forbidden", "user is not a supervisor in that company, or is inactive"),
  denied("feature_not_licensed", "the resource needs an optional module that this install is not licensed for"),
  denied("record_limit_reached", "install is at its licensed record limit; retrying does not help")
]

const requestCodes: ReadonlyArray<ErrorCode> = [
  bad("invalid_json", "body is not valid JSON"),
  bad("invalid_request", "missing required field or wrong type; see the errors array"),
  bad("invalid_type", "wrong type, typically a JSON number where a decimal string is required"),
  bad("unknown_parameter", "filter or field not on the allow-list; the message lists the valid ones"),
  bad("invalid_enum", "value outside the field's allowed set"),
  bad("batch_too_large", "more than 250 records in one /batch"),
  bad("invalid_precision", "more decimal places than the field holds (rejected, never rounded)"),
  group(404)("not_found", "no record with that id in the token's company"),
  group(405)("method_not_allowed", "resource does not support the verb; Allow lists the verbs"),
  conflict("duplicate", "unique value already used"),
  conflict("idempotency_replay", "Idempotency-Key reused with a different body"),
  conflict("request_in_progress", "same Idempotency-Key still running; wait and retry"),
  conflict("stale_record", "If-Match did not match; merge from the returned body and retry"),
  conflict("not_posted", "record is still a draft and the operation needs a posted record"),
  conflict("cannot_cancel", "cancelling blocked (closed period, payments applied, something depends on the document)"),
  conflict(
    "line_has_shipped",
    "deleting an order line, reducing it below what shipped, or adding one to an order that has shipped"
  ),
  conflict("line_has_receipts", "the same for a purchase order with receipts"),
  conflict(
    "order_already_billed",
    "adding hours to a service order that reached billed, or amending a header field an invoice references"
  ),
  conflict("hours_already_billed", "PATCH or DELETE on a time entry already converted into an order line"),
  conflict(
    "shipment_already_invoiced",
    "invoicing a shipment that is cancelled or already has an invoiceid; also on cancelling an invoiced shipment"
  ),
  conflict("po_complete", "PATCH or adding a line on a purchase order marked complete"),
  conflict("invoice_already_posted", "adding a line to a posted invoice"),
  conflict("apbill_already_posted", "coding a distribution line on a bill that already has a voucherid"),
  group(415)("not_batchable", "a file-returning endpoint (PDF, PNG) was requested inside a /batch"),
  refused("unknown_value", "a reference did not resolve; field names which"),
  refused("ambiguous_value", "a reference matched more than one active record; send the id"),
  refused("conflicting_reference", "an id and a code were sent and resolve to different records"),
  refused("unsupported_value", "field exists and value is well-formed but cannot be stored"),
  refused("rule_violation", "the application refused the document; message carries its reason"),
  group(429)("rate_limited", "too many requests; honour Retry-After"),
  group(500)("server_error", "write did not complete"),
  group(501)("not_implemented", "path is declared and routed but not built yet")
]

const accountingCodes: ReadonlyArray<ErrorCode> = [
  refused("gl_set_unbalanced", "signed line amounts of a journal set do not sum to zero"),
  refused("gl_set_too_short", "fewer than two lines in a journal set"),
  refused(
    "period_closed",
    "document date falls in a closed ledger period (for reversals: the current period is closed)"
  ),
  refused("shipto_mismatch", "shiptoid belongs to a different customer"),
  refused("cannot_ship_quote", "shipping a document whose status is quote"),
  refused(
    "shipqty_exceeds_remaining",
    "shipping more than qtyorder minus qtyship; message carries the remaining quantity"
  ),
  refused("nothing_to_invoice", "no shipped-and-unbilled quantity and no deposit"),
  refused("distribution_exceeds_total", "bill lines would code more than is owed the vendor"),
  refused("deposit_exceeds_order", "deposit larger than what is left on the order"),
  refused("cannot_invoice_quote", "invoicing a document whose status is quote"),
  refused("hours_require_service_order", "creating a time entry that names an order whose ordertype is not service")
]

export const errorCodes: ReadonlyArray<ErrorCode> = [...accessCodes, ...requestCodes, ...accountingCodes]
