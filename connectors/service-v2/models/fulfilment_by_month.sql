-- How fast do we ship, month by month?
--
-- One row for each month of the order's date, type of order and location; the lines of order_line_fulfilment.
-- Counts: orders in every status but quote. An order is shipped in full when each of its lines with a quantity above
-- zero is, and there is one.
-- Leaves out: quotes; orders without lines; cancelled and deleted orders, lines, shipments and shipment lines. Days that
-- are not known yet are in no median: the latest months show their fastest orders only, so read them beside orders and
-- orders_in_full.
-- Days are counted from orderdate, since orders have neither a promised date nor a date of confirmation. Whether an
-- order was late is therefore unknown.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-12, SHIPMENTS-06, SHIPMENTS-12, RES-10, RES-12, WRITE-01, WRITE-02.
--
-- Indexes: orderlines (orderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the order's date
--   ordertype text: fulfillment, service or rental
--   location_id bigint: id of the location that the orders ship from
--   location text: locationcode
--   orders bigint: number of orders
--   orders_shipped bigint: orders with a date and a dated shipment
--   orders_in_full bigint: orders that shipped in full
--   median_days_to_first numeric: median of the days from the order to its first shipment
--   median_days_to_full numeric: median of the days from the order to its last shipment, of orders shipped in full
--   p90_days_to_full integer: days within which nine of ten orders that shipped in full did so
--   lines bigint: number of order lines
--   lines_in_full bigint: lines that shipped in full
--   median_line_days_to_full numeric: median of the days from the order to the line's last shipment, of lines shipped in full
with shipped as (
  select sl._company_id, sl.orderlineid, min(s.shipdate) as first_shipped, max(s.shipdate) as last_shipped
  from {{shipmentlines}} sl
  join {{shipments}} s on s._company_id = sl._company_id and s.id = sl.shipmentid
  where sl._deleted_at is null and not coalesce(sl.cancel, false) and sl.quantity > 0
    and s._deleted_at is null and not coalesce(s.cancel, false)
  group by sl._company_id, sl.orderlineid
),
ordered as (
  select
    o._company_id,
    o.orderdate,
    o.ordertype,
    o.inventorylocationid,
    o.inventorylocation,
    row_number() over in_order = 1 as is_order,
    bool_or(f.is_due) over in_order and bool_and(f.is_full or not f.is_due) over in_order as is_order_full,
    min(s.first_shipped) over in_order - o.orderdate as days_to_first,
    max(s.last_shipped) over in_order - o.orderdate as days_to_full,
    f.is_full as is_line_full,
    s.last_shipped - o.orderdate as line_days_to_full
  from {{orders}} o
  join {{orderlines}} l on l._company_id = o._company_id and l.orderid = o.id
  left join shipped s on s._company_id = l._company_id and s.orderlineid = l.id
  cross join lateral (
    select
      coalesce(l.qtyorder, 0) > 0 as is_due,
      coalesce(l.qtyorder, 0) > 0 and coalesce(l.qtyship, 0) >= coalesce(l.qtyorder, 0) as is_full
  ) f
  where o._deleted_at is null and not coalesce(o.cancel, false) and coalesce(o.status, '') <> 'quote'
    and l._deleted_at is null and not coalesce(l.cancel, false)
  window in_order as (partition by o._company_id, o.id)
)
select
  _company_id as company_id,
  date_trunc('month', orderdate::timestamp)::date as month,
  ordertype,
  inventorylocationid as location_id,
  max(inventorylocation) as location,
  count(*) filter (where is_order) as orders,
  count(days_to_first) filter (where is_order) as orders_shipped,
  count(*) filter (where is_order and is_order_full) as orders_in_full,
  percentile_cont(0.5) within group (order by days_to_first) filter (where is_order) as median_days_to_first,
  percentile_cont(0.5) within group (order by days_to_full)
    filter (where is_order and is_order_full) as median_days_to_full,
  percentile_disc(0.9) within group (order by days_to_full)
    filter (where is_order and is_order_full) as p90_days_to_full,
  count(*) as lines,
  count(*) filter (where is_line_full) as lines_in_full,
  percentile_cont(0.5) within group (order by line_days_to_full)
    filter (where is_line_full) as median_line_days_to_full
from ordered
group by 1, 2, ordertype, inventorylocationid
