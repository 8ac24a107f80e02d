-- What is each customer's balance, credit left, last invoice and last payment?
--
-- One row for each customer, cancelled ones included (is_cancelled), since they may still owe.
-- Counts: posted invoices that are neither cancelled nor deleted; overpaid ones lower the balance. It is the figure that
-- the service itself answers for the balance of a customer.
-- Where tributary.as_of is set, the balance is that of the day, as in receivables_open; limits, terms and flags are as now.
-- Leaves out: deleted customers; drafts from the balance (drafts has them); deposits and returns.
-- Amounts are in the company's own currency, since invoices carry none.
-- Facts: RES-05, SPECIAL-11, STATE-10, STATE-12, STATE-16, PAYMENTS-07, PAYMENTS-42, PAYMENTS-48.
--
-- Indexes: invoices (customerid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   customer_id bigint: id of the customer
--   customer text: customercode
--   customer_name text: name
--   salesman text: name of the salesperson
--   terms text: payment terms
--   is_cancelled boolean: whether the customer is cancelled
--   open_invoices bigint: posted invoices that are not settled
--   balance numeric: unpaid amount of them
--   drafts numeric: total of the invoices that are not posted
--   credit_limit numeric: credit limit; empty when there is none
--   credit_available numeric: credit limit minus balance
--   is_over_limit boolean: whether the balance is more than the credit limit
--   oldest_open_date date: date of the oldest invoice with something to pay
--   last_invoice_date date: date of the latest posted invoice
--   last_payment_date date: accounting date of the latest payment that was neither cancelled nor returned
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
  c._company_id as company_id,
  c.id as customer_id,
  c.customercode as customer,
  c.name as customer_name,
  c.salesman,
  c.invoiceterm as terms,
  coalesce(c.cancel, false) as is_cancelled,
  coalesce(i.open_invoices, 0) as open_invoices,
  coalesce(i.balance, 0) as balance,
  coalesce(i.drafts, 0) as drafts,
  c.creditlimit as credit_limit,
  c.creditlimit - coalesce(i.balance, 0) as credit_available,
  coalesce(i.balance, 0) > c.creditlimit as is_over_limit,
  i.oldest_open_date,
  i.last_invoice_date,
  p.last_payment_date
from {{customers}} c
left join (
  select
    i._company_id,
    i.customerid,
    count(*) filter (where i.voucherid is not null and m.total <> m.paid) as open_invoices,
    sum(m.total - m.paid) filter (where i.voucherid is not null) as balance,
    sum(m.total) filter (where i.voucherid is null) as drafts,
    min(i.invoicedate) filter (where i.voucherid is not null and m.total > m.paid) as oldest_open_date,
    max(i.invoicedate) filter (where i.voucherid is not null and (i.invoicedate > {{until}}) is not true) as last_invoice_date
  from {{invoices}} i
  left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
  cross join lateral (
    -- On the day: a later invoice does not count, but what was paid for it does; a later payment does not.
    select
      case when i.invoicedate > {{until}} then 0 else coalesce(i.invoicetotal, 0) end as total,
      case when i.invoicedate > {{until}} then coalesce(p.received, 0) else coalesce(i.invoicepaid, 0) - coalesce(p.later, 0) end
        as paid
  ) m
  where i._deleted_at is null and not coalesce(i.cancel, false)
  group by i._company_id, i.customerid
) i on i._company_id = c._company_id and i.customerid = c.id
left join (
  select _company_id, customerid, max(datereceived) as last_payment_date
  from {{payments}}
  where _deleted_at is null and not coalesce(cancel, false) and (datereceived > {{until}}) is not true and coalesce(returned, 0) <> 1
  group by _company_id, customerid
) p on p._company_id = c._company_id and p.customerid = c.id
where c._deleted_at is null
