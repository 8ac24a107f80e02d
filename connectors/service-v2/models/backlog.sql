-- What is ordered and not shipped, by customer, item and month?
--
-- One row for each customer, item, type of order, location and month of the order; the lines of open_order_lines.
-- Counts: lines that shipped less than ordered, of orders in every status except quote and billed; unconfirmed ones too,
-- and separately.
-- Leaves out: quotes, which are not orders yet; billed orders, which are complete; cancelled and deleted orders and
-- lines; lines that shipped in full or more.
-- The month is that of the order's date, since orders have no promised date. qtyship is the service's own sum of the
-- line's shipments that are not cancelled. lines_without_price counts the lines that the amounts do not include. Amounts
-- are in the company's own currency, since orders carry none.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-04, STATE-12, RES-09, RES-10, RES-15, WRITE-02, GEN-09.
--
-- Indexes: orderlines (orderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   customer_id bigint: id of the customer
--   customer text: customercode
--   item_id bigint: id of the item; empty for lines without one
--   item text: sku
--   ordertype text: fulfillment, service or rental
--   location_id bigint: id of the location that the orders ship from
--   location text: locationcode
--   month date: first day of the month of the order's date
--   orders bigint: number of orders
--   lines bigint: number of lines
--   lines_without_price bigint: lines that the amounts do not include
--   qty_ordered numeric: quantity ordered
--   qty_shipped numeric: quantity shipped
--   qty_remaining numeric: ordered minus shipped
--   amount_ordered numeric: qty_ordered at the prices of the lines, each rounded to 4 decimals, half away from zero
--   amount_remaining numeric: qty_remaining at the prices of the lines, each rounded to 4 decimals, half away from zero
--   qty_unconfirmed numeric: the part of qty_remaining on unconfirmed orders
--   amount_unconfirmed numeric: the part of amount_remaining on unconfirmed orders
--   oldest_orderdate date: date of the oldest order
--   oldest_age_days integer: days from oldest_orderdate to today
with waiting as (
  select
    o._company_id,
    o.id,
    o.status,
    o.ordertype,
    o.customerid,
    o.customer,
    o.orderdate,
    o.inventorylocationid,
    o.inventorylocation,
    l.itemid,
    l.item,
    l.priceach,
    coalesce(l.qtyorder, 0) as ordered,
    coalesce(l.qtyship, 0) as shipped,
    coalesce(l.qtyorder, 0) - coalesce(l.qtyship, 0) as remaining
  from {{orders}} o
  join {{orderlines}} l on l._company_id = o._company_id and l.orderid = o.id
  where o._deleted_at is null and not coalesce(o.cancel, false) and coalesce(o.status, '') not in ('quote', 'billed')
    and l._deleted_at is null and not coalesce(l.cancel, false) and coalesce(l.qtyorder, 0) > coalesce(l.qtyship, 0)
)
select
  _company_id as company_id,
  customerid as customer_id,
  max(customer) as customer,
  itemid as item_id,
  max(item) as item,
  ordertype,
  inventorylocationid as location_id,
  max(inventorylocation) as location,
  date_trunc('month', orderdate::timestamp)::date as month,
  count(distinct id) as orders,
  count(*) as lines,
  count(*) filter (where priceach is null) as lines_without_price,
  sum(ordered) as qty_ordered,
  sum(shipped) as qty_shipped,
  sum(remaining) as qty_remaining,
  coalesce(sum(round(ordered * priceach, 4)), 0) as amount_ordered,
  coalesce(sum(round(remaining * priceach, 4)), 0) as amount_remaining,
  coalesce(sum(remaining) filter (where status = 'unconfirmed'), 0) as qty_unconfirmed,
  coalesce(sum(round(remaining * priceach, 4)) filter (where status = 'unconfirmed'), 0) as amount_unconfirmed,
  min(orderdate) as oldest_orderdate,
  {{as_of}} - min(orderdate) as oldest_age_days
from waiting
group by _company_id, customerid, itemid, ordertype, inventorylocationid, 9
