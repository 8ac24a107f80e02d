-- Which invoices disagree with their payments, or have a returned payment?
--
-- One row for each invoice whose paid amount is not the sum of its payments, or that has a payment which the bank
-- returned. No row means that all of them agree.
-- Counts: invoices that are not deleted, drafts and cancelled ones too, since these should have no payments.
-- Leaves out: cancelled and deleted payments.
-- Payments offer no modifiedsince: a difference may come from payments that were not read since the invoice changed; it
-- disappears after the next full scan of payments. A returned check counts as paid until a person cancels its payment.
-- Facts: PAYMENTS-04, PAYMENTS-05, PAYMENTS-10, PAYMENTS-48, PAYMENTS-49, STATE-10, STATE-16.
--
-- Indexes: payments (invoiceid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   invoice_id bigint: id of the invoice
--   invoicenumber text: number of the invoice
--   customer_id bigint: id of the customer
--   customer text: customercode
--   is_posted boolean: whether the invoice has a ledger voucher
--   is_cancelled boolean: whether the invoice is cancelled
--   invoicetotal numeric: sum of the lines
--   invoicepaid numeric: paid amount, as the invoice states it
--   payments bigint: number of payments
--   payments_total numeric: sum of the payments
--   difference numeric: invoicepaid minus payments_total
--   returned_total numeric: sum of the payments that the bank returned
select
  i._company_id as company_id,
  i.id as invoice_id,
  i.invoicenumber,
  i.customerid as customer_id,
  i.customer,
  i.voucherid is not null as is_posted,
  coalesce(i.cancel, false) as is_cancelled,
  coalesce(i.invoicetotal, 0) as invoicetotal,
  coalesce(i.invoicepaid, 0) as invoicepaid,
  coalesce(p.payments, 0) as payments,
  coalesce(p.total, 0) as payments_total,
  coalesce(i.invoicepaid, 0) - coalesce(p.total, 0) as difference,
  coalesce(p.returned, 0) as returned_total
from {{invoices}} i
left join (
  select
    _company_id,
    invoiceid,
    count(*) as payments,
    sum(amount) as total,
    sum(amount) filter (where returned = 1) as returned
  from {{payments}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, invoiceid
) p on p._company_id = i._company_id and p.invoiceid = i.id
where i._deleted_at is null
  and (coalesce(i.invoicepaid, 0) <> coalesce(p.total, 0) or coalesce(p.returned, 0) <> 0)
