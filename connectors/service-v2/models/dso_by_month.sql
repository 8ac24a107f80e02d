-- How many days of sales are outstanding (DSO), month by month?
--
-- One row for each month with an invoice or a payment, up to today's month.
-- Counts: invoices with a ledger voucher and payments of these invoices, dated today or before; credits lower invoiced.
-- dso = closing / invoiced * days. dso_3_months = closing / invoiced_3_months * days_3_months, which is steadier.
-- Today's month ends today: its days are those that have passed. Where nothing was invoiced there is no dso; a company
-- whose first month is less than two months before has no dso_3_months.
-- Leaves out: drafts, cancelled and deleted invoices and payments; invoices and payments dated after today. Closing is
-- the balance at the end of the month, as in receivables_rollforward; invoices and payments without a date are part of
-- every closing. Totals include the tax lines of the invoices. It is the average of all invoices, not of one customer.
-- Amounts are in the company's own currency, since invoices carry none. Today is as_of(): the session's current date,
-- or tributary.as_of where that is set.
-- Facts: STATE-10, STATE-12, RES-13, PAYMENTS-04, PAYMENTS-05, PAYMENTS-07, PAYMENTS-10, PAYMENTS-48.
--
-- Indexes: payments (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month
--   days integer: days of the month, up to today
--   invoiced numeric: total of the month's invoices, minus the credits
--   closing numeric: balance at the end of the month
--   dso numeric: closing / invoiced * days, rounded to 2 decimals, half away from zero
--   days_3_months integer: days of the month and of the two before
--   invoiced_3_months numeric: total of their invoices
--   dso_3_months numeric: closing / invoiced_3_months * days_3_months, rounded to 2 decimals, half away from zero
with entries as (
  select
    _company_id, invoicedate as day, coalesce(invoicetotal, 0) as invoiced,
    coalesce(invoicetotal, 0) - coalesce(invoicepaid, 0) as change
  from {{invoices}}
  where _deleted_at is null and not coalesce(cancel, false) and voucherid is not null
  union all
  -- The invoice's own paid amount is on its day: a payment moves its part of that to the day of the payment.
  select i._company_id, e.day, 0, e.change
  from {{payments}} p
  join {{invoices}} i on i._company_id = p._company_id and i.id = p.invoiceid
  cross join lateral (values (p.datereceived, -p.amount), (i.invoicedate, p.amount)) e (day, change)
  where p._deleted_at is null and not coalesce(p.cancel, false)
    and i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null
),
months as (
  select
    _company_id, date_trunc('month', day::timestamp)::date as month,
    sum(invoiced) as invoiced, coalesce(sum(change), 0) as change
  from entries
  where day is null or day <= {{as_of}}
  group by 1, 2
),
balances as (
  select
    _company_id, month, invoiced,
    sum(change) over past as closing,
    sum(invoiced) over (past range between interval '2 months' preceding and current row) as invoiced_3_months,
    least((month + interval '1 month')::date - 1, {{as_of}}) as last_day,
    (month - interval '2 months')::date as month_3,
    min(month) over (partition by _company_id) as first_month
  from months
  window past as (partition by _company_id order by month nulls first)
)
select
  _company_id as company_id, month,
  last_day - month + 1 as days,
  invoiced,
  closing,
  case when invoiced > 0 then round(closing * (last_day - month + 1) / invoiced, 2) end as dso,
  last_day - month_3 + 1 as days_3_months,
  invoiced_3_months,
  case
    when invoiced_3_months > 0 and first_month <= month_3
    then round(closing * (last_day - month_3 + 1) / invoiced_3_months, 2)
  end as dso_3_months
from balances
where month is not null
