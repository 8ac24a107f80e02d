-- Which invoices are not settled, and how long are they overdue?
--
-- One row for each posted invoice whose total and paid amount differ.
-- Counts: invoices with a ledger voucher; overpaid ones and credits, with a negative amount in the bucket credit.
-- Leaves out: drafts, cancelled and deleted invoices, and invoices settled in full.
-- Paid is the invoice's own invoicepaid (the payments that are not cancelled); invoice_payment_check compares it with
-- the payments. A returned check counts as paid until a person cancels its payment.
-- Invoices carry no terms: the due date is the invoice's date plus the net days of the terms that its customer has now;
-- without terms it is the date of the invoice. Invoices carry no currency: amounts are in the company's own.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set; it moves the day, not the payments.
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
    when m.open_amount < 0 then 'credit'
    when d.due_date is null then 'undated'
    when {{as_of}} <= d.due_date then 'not due'
    when {{as_of}} - d.due_date <= 30 then '1-30'
    when {{as_of}} - d.due_date <= 60 then '31-60'
    when {{as_of}} - d.due_date <= 90 then '61-90'
    else 'over 90'
  end as bucket,
  coalesce(i.invoicetotal, 0) as invoicetotal,
  coalesce(i.invoicepaid, 0) as invoicepaid,
  m.open_amount
from {{invoices}} i
left join {{customers}} c on c._company_id = i._company_id and c.id = i.customerid and c._deleted_at is null
left join {{invoiceterms}} t on t._company_id = c._company_id and t.id = c.invoicetermid and t._deleted_at is null
cross join lateral (
  -- Days that no calendar holds are taken for none.
  select i.invoicedate + case when t.netduedays between -36500 and 36500 then t.netduedays::integer else 0 end as due_date
) d
cross join lateral (select coalesce(i.invoicetotal, 0) - coalesce(i.invoicepaid, 0) as open_amount) m
where i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null and m.open_amount <> 0
