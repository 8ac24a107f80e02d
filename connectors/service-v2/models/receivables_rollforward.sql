-- How did the receivables change, month by month?
--
-- One row for each month with an invoice, a payment or a return. A month without a row closed as the row before it.
-- Counts: invoices with a ledger voucher in the month of their accounting date; payments of these invoices in theirs,
-- returned ones included until a person cancels them. closing = opening + invoiced - credited - paid - written_off +
-- adjusted, and a row's opening is the closing of the row before. The last closing is the total of receivables_open.
-- Leaves out: drafts, cancelled and deleted invoices and payments, and payments of invoices that do not count. Adjusted
-- is the part of the paid amounts that no payment explains: the payments of the month's invoices minus the invoices'
-- own invoicepaid, in the month of the invoice; invoice_payment_check names the invoices. Records without a date are in
-- a row without a month, before all others. A cancelled record leaves its month, also a past one: the views in
-- erp_models_asof show the months as they were. The documents do not say that a return changes a balance:
-- return_credits is beside the sum. Amounts are in the company's own currency, since invoices carry none.
-- Facts: STATE-10, STATE-12, STATE-16, RES-13, PAYMENTS-04, PAYMENTS-05, PAYMENTS-07, PAYMENTS-08, PAYMENTS-10,
-- PAYMENTS-48, PAYMENTS-49, RMARETURNS-05, RMARETURNS-14, RMARETURNS-15.
--
-- Indexes: payments (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month; empty for records without a date
--   opening numeric: balance before the month
--   invoices bigint: number of invoices and credits
--   invoiced numeric: total of the invoices
--   credited numeric: total of the credits (invoices with a negative total), positive
--   payments bigint: number of payments, write-offs included
--   paid numeric: payments by any method but write-off
--   written_off numeric: payments by the method write-off
--   adjusted numeric: paid amounts without a payment, negative; payments without a paid amount, positive
--   closing numeric: balance at the end of the month
--   return_credits numeric: total credit of the returns of these invoices, by the date of return; not in the balance
with entries as (
  select
    _company_id, invoicedate as day,
    1 as invoices, greatest(invoicetotal, 0) as invoiced, greatest(-invoicetotal, 0) as credited,
    0 as payments, 0 as paid, 0 as written_off, -coalesce(invoicepaid, 0) as adjusted, 0 as return_credits
  from {{invoices}}
  where _deleted_at is null and not coalesce(cancel, false) and voucherid is not null
  union all
  -- A payment lowers the balance on its own day, and explains the invoice's paid amount on the invoice's day.
  select
    i._company_id, e.day,
    0, 0, 0, e.payments, e.paid, e.written_off, e.adjusted, 0
  from {{payments}} p
  join {{invoices}} i on i._company_id = p._company_id and i.id = p.invoiceid
  cross join lateral (
    values
      (
        p.datereceived, 1,
        case when p.paymeth is distinct from 99 then p.amount else 0 end,
        case when p.paymeth = 99 then p.amount else 0 end,
        0
      ),
      (i.invoicedate, 0, 0, 0, p.amount)
  ) e (day, payments, paid, written_off, adjusted)
  where p._deleted_at is null and not coalesce(p.cancel, false)
    and i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null
  union all
  select i._company_id, r.return_date, 0, 0, 0, 0, 0, 0, 0, r.total_credit
  from {{rmareturns}} r
  join {{invoices}} i on i._company_id = r._company_id and i.id = r.invoiceid
  where r._deleted_at is null and not coalesce(r.cancel, false)
    and i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null
),
months as (
  select
    _company_id, date_trunc('month', day::timestamp)::date as month,
    sum(invoices) as invoices, coalesce(sum(invoiced), 0) as invoiced, coalesce(sum(credited), 0) as credited,
    sum(payments) as payments, coalesce(sum(paid), 0) as paid, coalesce(sum(written_off), 0) as written_off,
    coalesce(sum(adjusted), 0) as adjusted, coalesce(sum(return_credits), 0) as return_credits
  from entries
  where (day > {{until}}) is not true
  group by _company_id, month
),
balances as (
  select *, sum(invoiced - credited - paid - written_off + adjusted) over past as closing
  from months
  window past as (partition by _company_id order by month nulls first)
)
select
  _company_id as company_id, month,
  closing - (invoiced - credited - paid - written_off + adjusted) as opening,
  invoices, invoiced, credited, payments, paid, written_off, adjusted, closing, return_credits
from balances
