-- Which orders are open, and what remains to ship?
--
-- One row for each order line that shipped less than ordered.
-- Counts: orders in every status except quote and billed, of every ordertype; unconfirmed ones too (see status).
-- Leaves out: quotes, which are not orders yet; billed orders, which are complete; cancelled and deleted orders and
-- lines; lines that shipped in full or more.
-- qtyship is the service's own sum of the line's shipments that are not cancelled. Amounts are in the
-- company's own currency, since orders carry none.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-04, STATE-12, RES-09, RES-10, WRITE-02, GEN-09.
--
-- Indexes: orderlines (orderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   order_id bigint: id of the order
--   orderline_id bigint: id of the order line
--   linenumber bigint: position on the order, from 1
--   ordertype text: fulfillment, service or rental
--   status text: unconfirmed, open or partial; what else the service may say
--   customer_id bigint: id of the customer
--   customer text: customercode
--   orderdate date: date of the order
--   age_days integer: days from the order's date to today
--   location_id bigint: id of the location that it ships from
--   location text: locationcode
--   item_id bigint: id of the item
--   item text: sku
--   description text: text of the line
--   qty_ordered numeric: quantity ordered
--   qty_shipped numeric: quantity shipped
--   qty_billed numeric: quantity invoiced
--   qty_remaining numeric: ordered minus shipped
--   priceach numeric: unit price
--   amount_remaining numeric: qty_remaining at priceach, rounded to 4 decimals, half away from zero
select
  o._company_id as company_id,
  o.id as order_id,
  l.id as orderline_id,
  l.linenumber,
  o.ordertype,
  o.status,
  o.customerid as customer_id,
  o.customer,
  o.orderdate,
  {{as_of}} - o.orderdate as age_days,
  o.inventorylocationid as location_id,
  o.inventorylocation as location,
  l.itemid as item_id,
  l.item,
  l.description,
  coalesce(l.qtyorder, 0) as qty_ordered,
  coalesce(l.qtyship, 0) as qty_shipped,
  coalesce(l.qtybilled, 0) as qty_billed,
  coalesce(l.qtyorder, 0) - coalesce(l.qtyship, 0) as qty_remaining,
  l.priceach,
  round((coalesce(l.qtyorder, 0) - coalesce(l.qtyship, 0)) * coalesce(l.priceach, 0), 4) as amount_remaining
from {{orders}} o
join {{orderlines}} l on l._company_id = o._company_id and l.orderid = o.id
where o._deleted_at is null and not coalesce(o.cancel, false) and coalesce(o.status, '') not in ('quote', 'billed')
  and l._deleted_at is null and not coalesce(l.cancel, false) and coalesce(l.qtyorder, 0) > coalesce(l.qtyship, 0)
