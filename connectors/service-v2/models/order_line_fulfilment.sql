-- How long does it take from an order to the shipment of each line?
--
-- One row for each order line.
-- Counts: lines of orders in every status but quote; their shipment lines with a quantity above zero, by the date of the
-- shipment.
-- Leaves out: quotes; cancelled and deleted orders, lines, shipments and shipment lines.
-- Days are counted from orderdate, since orders have neither a promised date nor a date of confirmation. Billed hours
-- count as shipped without a shipment: such a line has no dates. A shipment without a date counts in shipments only.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-12, SHIPMENTS-06, SHIPMENTS-12, RES-10, RES-12, WRITE-01, WRITE-02.
--
-- Indexes: orderlines (orderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   order_id bigint: id of the order
--   orderline_id bigint: id of the order line
--   linenumber bigint: position on the order, from 1
--   ordertype text: fulfillment, service or rental
--   status text: status of the order
--   customer_id bigint: id of the customer
--   customer text: customercode
--   location_id bigint: id of the location that it ships from
--   location text: locationcode
--   item_id bigint: id of the item
--   item text: sku
--   orderdate date: date of the order
--   qty_ordered numeric: quantity ordered
--   qty_shipped numeric: quantity shipped, as the service states it
--   is_shipped_in_full boolean: whether something was ordered and at least that much shipped
--   shipments bigint: number of shipments
--   first_shipped date: date of the first shipment
--   last_shipped date: date of the last shipment so far
--   days_to_first integer: days from orderdate to first_shipped
--   days_to_full integer: days from orderdate to last_shipped; empty while it is not shipped in full
with shipped as (
  select
    sl._company_id,
    sl.orderlineid,
    count(distinct s.id) as shipments,
    min(s.shipdate) as first_shipped,
    max(s.shipdate) as last_shipped
  from {{shipmentlines}} sl
  join {{shipments}} s on s._company_id = sl._company_id and s.id = sl.shipmentid
  where sl._deleted_at is null and not coalesce(sl.cancel, false) and sl.quantity > 0
    and s._deleted_at is null and not coalesce(s.cancel, false)
  group by sl._company_id, sl.orderlineid
)
select
  o._company_id as company_id,
  o.id as order_id,
  l.id as orderline_id,
  l.linenumber,
  o.ordertype,
  o.status,
  o.customerid as customer_id,
  o.customer,
  o.inventorylocationid as location_id,
  o.inventorylocation as location,
  l.itemid as item_id,
  l.item,
  o.orderdate,
  coalesce(l.qtyorder, 0) as qty_ordered,
  coalesce(l.qtyship, 0) as qty_shipped,
  f.is_shipped_in_full,
  coalesce(s.shipments, 0) as shipments,
  s.first_shipped,
  s.last_shipped,
  s.first_shipped - o.orderdate as days_to_first,
  case when f.is_shipped_in_full then s.last_shipped - o.orderdate end as days_to_full
from {{orders}} o
join {{orderlines}} l on l._company_id = o._company_id and l.orderid = o.id
left join shipped s on s._company_id = l._company_id and s.orderlineid = l.id
cross join lateral (
  select coalesce(l.qtyorder, 0) > 0 and coalesce(l.qtyship, 0) >= coalesce(l.qtyorder, 0) as is_shipped_in_full
) f
where o._deleted_at is null and not coalesce(o.cancel, false) and coalesce(o.status, '') <> 'quote'
  and l._deleted_at is null and not coalesce(l.cancel, false)
