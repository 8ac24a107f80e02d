-- Who owes us how much, and how old is it?
--
-- One row for each customer with posted invoices that are not settled; the amounts of receivables_open by bucket.
-- Counts: invoices with a ledger voucher; overpaid ones and credits in the column credit, as negative amounts.
-- Leaves out: drafts, cancelled and deleted invoices, settled invoices, deposits (deposits_unapplied) and returns.
-- The due date is the invoice's date plus the net days of the terms that the customer has now; the date itself where
-- there are no terms. Amounts are in the company's own currency, since invoices carry none.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set. Where it is set, a later payment does
-- not lower an amount, a later invoice does not count, and what was paid for it before is a credit. So the amounts of a day
-- add up to the closing of receivables_rollforward on that day.
-- Facts: STATE-09, STATE-10, STATE-12, RES-05, RES-13, INVOICETERMS-07, PAYMENTS-48, FIELD-13.
--
-- Indexes: invoices (customerid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   customer_id bigint: id of the customer; empty for invoices without one
--   customer text: customercode
--   customer_name text: name of the customer as it is now
--   terms text: payment terms of the customer as they are now
--   as_of date: the day that the ages are counted to
--   invoices bigint: number of invoices that are not settled
--   not_due numeric: due today or later
--   days_1_30 numeric: 1 to 30 days overdue
--   days_31_60 numeric: 31 to 60 days overdue
--   days_61_90 numeric: 61 to 90 days overdue
--   over_90 numeric: more than 90 days overdue
--   undated numeric: invoices without a date
--   credit numeric: overpaid invoices and credits, negative
--   total numeric: sum of all buckets: the amount that the customer owes
--   oldest_due_date date: earliest due date of an invoice with something to pay
with paid_by_day as (
  -- Payments on either side of the day; none are read without one.
  select
    _company_id, invoiceid,
    coalesce(sum(amount) filter (where datereceived > {{until}}), 0) as later,
    coalesce(sum(amount) filter (where (datereceived > {{until}}) is not true), 0) as received
  from {{payments}}
  where {{until}} < 'infinity' and invoiceid is not null and _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, invoiceid
),
open as (
  select
    i._company_id,
    i.customerid,
    i.customer,
    c.name,
    t.verbal,
    m.total - m.paid as amount,
    -- Days that no calendar holds are taken for none.
    i.invoicedate
      + case when t.netduedays between -36500 and 36500 then t.netduedays::integer else 0 end as due_date
  from {{invoices}} i
  left join {{customers}} c on c._company_id = i._company_id and c.id = i.customerid and c._deleted_at is null
  left join {{invoiceterms}} t on t._company_id = c._company_id and t.id = c.invoicetermid and t._deleted_at is null
  left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
  cross join lateral (
    -- On the day: a later invoice does not count, but what was paid for it does; a later payment does not.
    select
      case when i.invoicedate > {{until}} then 0 else coalesce(i.invoicetotal, 0) end as total,
      case when i.invoicedate > {{until}} then coalesce(p.received, 0) else coalesce(i.invoicepaid, 0) - coalesce(p.later, 0) end
        as paid
  ) m
  where i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null and m.total <> m.paid
)
select
  _company_id as company_id,
  customerid as customer_id,
  max(customer) as customer,
  max(name) as customer_name,
  max(verbal) as terms,
  {{as_of}} as as_of,
  count(*) as invoices,
  coalesce(sum(amount) filter (where amount > 0 and {{as_of}} <= due_date), 0) as not_due,
  coalesce(sum(amount) filter (where amount > 0 and {{as_of}} - due_date between 1 and 30), 0) as days_1_30,
  coalesce(sum(amount) filter (where amount > 0 and {{as_of}} - due_date between 31 and 60), 0) as days_31_60,
  coalesce(sum(amount) filter (where amount > 0 and {{as_of}} - due_date between 61 and 90), 0) as days_61_90,
  coalesce(sum(amount) filter (where amount > 0 and {{as_of}} - due_date > 90), 0) as over_90,
  coalesce(sum(amount) filter (where amount > 0 and due_date is null), 0) as undated,
  coalesce(sum(amount) filter (where amount < 0), 0) as credit,
  sum(amount) as total,
  min(due_date) filter (where amount > 0) as oldest_due_date
from open
group by _company_id, customerid
