-- What margin did the invoiced lines with a known cost make?
--
-- One row for each month, customer, item, unit and type of line; its amounts add up to revenue_by_month.
-- Counts: lines of invoices with a ledger voucher, in the month of the invoice's accounting date; credits as negative.
-- Leaves out: lines of drafts and of cancelled or deleted invoices; product-type tax lines (linetype 1), which are not
-- revenue. Lines have no cancel flag of their own.
-- The cost of a line is qty at its costeach, which the documents name without a word on its meaning: it is read as the
-- cost of one unit of qty. A line without costeach or qty has no known cost, nor has one whose price is per another
-- unit than its quantity, since the cost may be per that unit too. Such lines are counted separately, never as cost zero.
-- A costeach of 0 is a stated cost; at_zero_cost shows these lines, since some installs may write 0 for unknown. Items
-- have no cost. Amounts are in the company's own currency, since invoices carry none.
-- Facts: STATE-09, STATE-10, STATE-12, INVOICELINES-06, INVOICELINES-08, INVOICELINES-09, INVOICELINES-17 to
-- INVOICELINES-20, INVOICELINES-23, INVOICELINES-43, INVOICELINES-57.
--
-- Indexes: invoicelines (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the invoice's date
--   customer_id bigint: id of the customer
--   customer text: customercode
--   item_id bigint: id of the item; empty for lines without one
--   item text: sku
--   linetype bigint: 0 standard product, 2 delivery charge, 3 fuel charge, 4 restock fee, 5 billed expense
--   unit text: unit that the quantity is counted in
--   lines bigint: number of lines
--   amount numeric: sum of totalprice
--   lines_with_cost bigint: lines with a known cost
--   qty_with_cost numeric: their quantity
--   amount_with_cost numeric: the part of amount on them
--   cost numeric: their quantities at costeach, each rounded to 4 decimals, half away from zero
--   margin numeric: amount_with_cost minus cost
--   lines_at_zero_cost bigint: the lines among them whose costeach is 0
--   amount_at_zero_cost numeric: the part of amount_with_cost on those
--   lines_without_cost bigint: lines without a known cost
--   amount_without_cost numeric: the part of amount on them
--   lines_per_other_unit bigint: the lines among them whose price is per another unit than the quantity
with sold as (
  select
    l.*,
    i.invoicedate,
    i.customerid,
    i.customer,
    u.is_per_other_unit,
    case when not u.is_per_other_unit then round(l.qty * l.costeach, 4) end as cost
  from {{invoicelines}} l
  join {{invoices}} i on i._company_id = l._company_id and i.id = l.invoiceid
  cross join lateral (
    select coalesce(l.priceunitnameid <> l.qtyunitnameid, false) or coalesce(l.qtyunitperpriceunit <> 1, false)
      as is_per_other_unit
  ) u
  where l._deleted_at is null and coalesce(l.linetype, 0) <> 1
    and i._deleted_at is null and (i.invoicedate > {{until}}) is not true and not coalesce(i.cancel, false) and i.voucherid is not null
)
select
  _company_id as company_id,
  date_trunc('month', invoicedate::timestamp)::date as month,
  customerid as customer_id,
  max(customer) as customer,
  itemid as item_id,
  max(item) as item,
  linetype,
  qtyunitname as unit,
  count(*) as lines,
  coalesce(sum(totalprice), 0) as amount,
  count(cost) as lines_with_cost,
  coalesce(sum(qty) filter (where cost is not null), 0) as qty_with_cost,
  coalesce(sum(totalprice) filter (where cost is not null), 0) as amount_with_cost,
  coalesce(sum(cost), 0) as cost,
  coalesce(sum(totalprice) filter (where cost is not null), 0) - coalesce(sum(cost), 0) as margin,
  count(*) filter (where cost is not null and costeach = 0) as lines_at_zero_cost,
  coalesce(sum(totalprice) filter (where cost is not null and costeach = 0), 0) as amount_at_zero_cost,
  count(*) filter (where cost is null) as lines_without_cost,
  coalesce(sum(totalprice) filter (where cost is null), 0) as amount_without_cost,
  count(*) filter (where is_per_other_unit) as lines_per_other_unit
from sold
group by 1, 2, customerid, itemid, linetype, qtyunitname
