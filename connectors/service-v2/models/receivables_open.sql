-- Which invoices are not settled, and how long are they overdue?
--
-- One row for each posted invoice whose total and paid amount differ.
-- Counts: invoices with a ledger voucher; overpaid ones and credits, with a negative amount in the bucket credit.
-- Leaves out: drafts, cancelled and deleted invoices, and invoices settled in full.
-- Paid is the invoice's own invoicepaid (the payments that are not cancelled); invoice_payment_check compares it with
-- the payments. A returned check counts as paid until a person cancels its payment.
-- Invoices carry no terms: the due date is the invoice's date plus the net days of the terms that its customer has now;
-- without terms it is the date of the invoice. Invoices carry no currency: amounts are in the company's own.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set. Where it is set, a later payment does
-- not lower an amount, a later invoice does not count, and what was paid for it before is a credit. So the amounts of a day
-- add up to the closing of receivables_rollforward on that day.
-- Facts: STATE-09, STATE-10, STATE-12, STATE-16, RES-05, RES-13, INVOICETERMS-06, INVOICETERMS-07, PAYMENTS-48,
-- FIELD-13.
--
-- Indexes: invoices (customerid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   invoice_id bigint: id of the invoice
--   invoicenumber text: number of the invoice
--   customer_id bigint: id of the customer
--   customer text: customercode
--   customer_name text: name of the customer as it is now
--   order_id bigint: the order that was invoiced, if any
--   location text: locationcode of the invoice
--   invoicedate date: accounting date of the invoice
--   terms text: payment terms of the customer as they are now
--   due_date date: invoicedate plus the net days of the terms
--   days_overdue integer: days from the due date to today; negative while it is not due
--   bucket text: credit, undated, not due, 1-30, 31-60, 61-90 or over 90
--   invoicetotal numeric: sum of the lines
--   invoicepaid numeric: sum of the payments that are not cancelled
--   open_amount numeric: invoicetotal minus invoicepaid
with paid_by_day as (
  -- Payments on either side of the day; none are read without one.
  select
    _company_id, invoiceid,
    coalesce(sum(amount) filter (where datereceived > {{until}}), 0) as later,
    coalesce(sum(amount) filter (where (datereceived > {{until}}) is not true), 0) as received
  from {{payments}}
  where {{until}} < 'infinity' and invoiceid is not null and _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, invoiceid
)
select
  i._company_id as company_id,
  i.id as invoice_id,
  i.invoicenumber,
  i.customerid as customer_id,
  i.customer,
  c.name as customer_name,
  i.orderid as order_id,
  i.inventorylocation as location,
  i.invoicedate,
  t.verbal as terms,
  d.due_date,
  {{as_of}} - d.due_date as days_overdue,
  case
    when m.total < m.paid then 'credit'
    when d.due_date is null then 'undated'
    when {{as_of}} <= d.due_date then 'not due'
    when {{as_of}} - d.due_date <= 30 then '1-30'
    when {{as_of}} - d.due_date <= 60 then '31-60'
    when {{as_of}} - d.due_date <= 90 then '61-90'
    else 'over 90'
  end as bucket,
  m.total as invoicetotal,
  m.paid as invoicepaid,
  m.total - m.paid as open_amount
from {{invoices}} i
left join {{customers}} c on c._company_id = i._company_id and c.id = i.customerid and c._deleted_at is null
left join {{invoiceterms}} t on t._company_id = c._company_id and t.id = c.invoicetermid and t._deleted_at is null
cross join lateral (
  -- Days that no calendar holds are taken for none.
  select i.invoicedate + case when t.netduedays between -36500 and 36500 then t.netduedays::integer else 0 end as due_date
) d
left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
cross join lateral (
  -- On the day: a later invoice does not count, but what was paid for it does; a later payment does not.
  select
    case when i.invoicedate > {{until}} then 0 else coalesce(i.invoicetotal, 0) end as total,
    case when i.invoicedate > {{until}} then coalesce(p.received, 0) else coalesce(i.invoicepaid, 0) - coalesce(p.later, 0) end
      as paid
) m
where i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null and m.total <> m.paid
