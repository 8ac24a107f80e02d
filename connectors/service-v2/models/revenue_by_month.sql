-- What did we invoice, month by month and item by item?
--
-- One row for each month, item, unit and type of line.
-- Counts: lines of invoices with a ledger voucher, in the month of the invoice's accounting date; credits as negative.
-- Leaves out: lines of drafts and of cancelled or deleted invoices; product-type tax lines (linetype 1), which are not
-- revenue. Lines have no cancel flag of their own.
-- Delivery, fuel and restock charges and billed expenses are counted, each as its linetype. Lines without an item share
-- one row for each linetype. Amounts are in the company's own currency, since invoices carry none.
-- Facts: STATE-09, STATE-10, STATE-12, INVOICELINES-04, INVOICELINES-06, INVOICELINES-08, INVOICELINES-09,
-- INVOICELINES-20, INVOICELINES-43, INVOICELINES-57.
--
-- Indexes: invoicelines (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the invoice's date
--   item_id bigint: id of the item; empty for lines without one
--   item text: sku
--   linetype bigint: 0 standard product, 2 delivery charge, 3 fuel charge, 4 restock fee, 5 billed expense
--   unit text: unit that the quantity is counted in
--   invoices bigint: number of invoices
--   lines bigint: number of lines
--   qty numeric: quantity invoiced
--   amount numeric: sum of totalprice
select
  l._company_id as company_id,
  date_trunc('month', i.invoicedate::timestamp)::date as month,
  l.itemid as item_id,
  max(l.item) as item,
  l.linetype,
  l.qtyunitname as unit,
  count(distinct i.id) as invoices,
  count(*) as lines,
  coalesce(sum(l.qty), 0) as qty,
  coalesce(sum(l.totalprice), 0) as amount
from {{invoicelines}} l
join {{invoices}} i on i._company_id = l._company_id and i.id = l.invoiceid
where l._deleted_at is null and coalesce(l.linetype, 0) <> 1
  and i._deleted_at is null and (i.invoicedate > {{until}}) is not true and not coalesce(i.cancel, false) and i.voucherid is not null
group by 1, 2, l.itemid, l.linetype, l.qtyunitname
