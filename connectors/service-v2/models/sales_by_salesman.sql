-- What did each salesperson's customers buy, month by month?
--
-- One row for each month and salesperson.
-- Counts: posted invoices in the month of their accounting date; credits as negative amounts.
-- Leaves out: drafts, cancelled and deleted invoices.
-- Neither orders nor invoices name a salesperson: an invoice goes to the present salesperson of its customer, not to the
-- seller of that time. The rate is today's too, and the documents do not say what a commission is paid on: none is computed.
-- Totals include the tax lines of the invoices. Amounts are in the company's own currency.
-- Facts: RES-05, SALESMEN-05, SALESMEN-08, SALESMEN-14, STATE-10, STATE-12.
--
-- Indexes: invoices (customerid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the invoice's date
--   salesman_id bigint: id of the salesperson; empty for customers without one
--   salesman text: name of the salesperson
--   commission_rate numeric: rate of the salesperson as it is now, in percent
--   customers bigint: number of customers invoiced
--   invoices bigint: number of invoices
--   invoiced numeric: sum of invoicetotal
--   paid numeric: the paid part of it
--   open_amount numeric: invoiced minus paid
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
  date_trunc('month', i.invoicedate::timestamp)::date as month,
  c.salesmanid as salesman_id,
  max(c.salesman) as salesman,
  max(s.commissionrate) as commission_rate,
  count(distinct i.customerid) as customers,
  count(*) as invoices,
  coalesce(sum(i.invoicetotal), 0) as invoiced,
  coalesce(sum(coalesce(i.invoicepaid, 0) - coalesce(p.later, 0)), 0) as paid,
  coalesce(sum(i.invoicetotal), 0) - coalesce(sum(coalesce(i.invoicepaid, 0) - coalesce(p.later, 0)), 0) as open_amount
from {{invoices}} i
left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
left join {{customers}} c on c._company_id = i._company_id and c.id = i.customerid and c._deleted_at is null
left join {{salesmen}} s on s._company_id = c._company_id and s.id = c.salesmanid and s._deleted_at is null
where i._deleted_at is null and (i.invoicedate > {{until}}) is not true and not coalesce(i.cancel, false) and i.voucherid is not null
group by 1, 2, c.salesmanid
