-- What is each customer's balance, credit left, last invoice and last payment?
--
-- One row for each customer, cancelled ones included (is_cancelled), since they may still owe.
-- Counts: posted invoices that are neither cancelled nor deleted; overpaid ones lower the balance. It is the figure that
-- the service itself answers for the balance of a customer.
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
    _company_id,
    customerid,
    count(*) filter (where voucherid is not null and coalesce(invoicetotal, 0) <> coalesce(invoicepaid, 0))
      as open_invoices,
    sum(coalesce(invoicetotal, 0) - coalesce(invoicepaid, 0)) filter (where voucherid is not null) as balance,
    sum(invoicetotal) filter (where voucherid is null) as drafts,
    min(invoicedate) filter (where voucherid is not null and coalesce(invoicetotal, 0) > coalesce(invoicepaid, 0))
      as oldest_open_date,
    max(invoicedate) filter (where voucherid is not null) as last_invoice_date
  from {{invoices}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, customerid
) i on i._company_id = c._company_id and i.customerid = c.id
left join (
  select _company_id, customerid, max(datereceived) as last_payment_date
  from {{payments}}
  where _deleted_at is null and not coalesce(cancel, false) and coalesce(returned, 0) <> 1
  group by _company_id, customerid
) p on p._company_id = c._company_id and p.customerid = c.id
where c._deleted_at is null
