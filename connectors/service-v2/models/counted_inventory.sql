-- What was counted of each item at each location, and what left since?
--
-- One row for each location and item that a count has; the latest count by countdate, then by id.
-- Counts: counts in every status, since the documents name none (see status); several lines of one count as their sum;
-- shipments from the location after the day of the count, and those of that day separately; what open and partial
-- orders still have to ship from it.
-- Leaves out: cancelled and deleted counts, shipments, shipment lines, orders and order lines; lines of counts without an
-- item or a quantity; items that were never counted at the location.
-- No quantity on hand: purchase receipts and transfers name no location, and the service's own stock figure
-- (GET /items/{id}/stock) belongs to no list that a sync reads. No value either, since items have no cost. The documents
-- call the location of a shipment the one "to receive into"; it is read as the one that it ships from.
-- Facts: RES-01, RES-02, RES-15, SHIPMENTS-06, SHIPMENTS-07, SHIPMENTS-12, SHIPMENTS-18, RES-12, STATE-04, STATE-12,
-- SPECIAL-11.
--
-- On a past day of tributary.as_of, to_ship is empty: orders have no dates of what they had to ship then.
--
-- Indexes: shipmentlines (shipmentid); orderlines (orderid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   location_id bigint: id of the location
--   location text: locationcode
--   item_id bigint: id of the item
--   item text: sku
--   description text: description of the item as it is now
--   count_id bigint: id of the latest count
--   status text: its status
--   counted_on date: its day
--   age_days integer: days from counted_on to today (as_of())
--   counted numeric: quantity found
--   shipped_that_day numeric: quantity shipped on the day of the count, before it or after it; empty without a day
--   shipped_since numeric: quantity shipped on later days; empty without a day
--   to_ship numeric: quantity that open and partial orders of this location still have to ship
with found as (
  select
    c._company_id,
    c.id,
    c.inventorylocationid,
    c.inventorylocation,
    c.status,
    c.countdate,
    f.itemid,
    sum(f.counted) as counted
  from {{inventorycounts}} c
  cross join lateral jsonb_array_elements(case when jsonb_typeof(c.lines) = 'array' then c.lines else '[]' end) e (line)
  cross join lateral (
    select
      case when e.line ->> 'itemid' ~ '^\d{1,18}$' then (e.line ->> 'itemid')::bigint end as itemid,
      case when e.line ->> 'counted' ~ '^-?\d+(\.\d+)?$' then (e.line ->> 'counted')::numeric end as counted
  ) f
  where c._deleted_at is null and (c.countdate > {{until}}) is not true and not coalesce(c.cancel, false) and f.itemid is not null and f.counted is not null
  group by c._company_id, c.id, c.inventorylocationid, c.inventorylocation, c.status, c.countdate, f.itemid
),
latest as not materialized (
  select distinct on (_company_id, inventorylocationid, itemid) *
  from found
  order by _company_id, inventorylocationid, itemid, countdate desc nulls last, id desc
),
shipped as (
  select s._company_id, s.locationid, ol.itemid, s.shipdate, sum(sl.quantity) as quantity
  from {{shipments}} s
  join {{shipmentlines}} sl on sl._company_id = s._company_id and sl.shipmentid = s.id
  join {{orderlines}} ol on ol._company_id = sl._company_id and ol.id = sl.orderlineid and ol._deleted_at is null
  where s._deleted_at is null and (s.shipdate > {{until}}) is not true and not coalesce(s.cancel, false)
    and sl._deleted_at is null and not coalesce(sl.cancel, false)
  group by s._company_id, s.locationid, ol.itemid, s.shipdate
),
left_since as (
  select
    l._company_id,
    l.inventorylocationid,
    l.itemid,
    sum(s.quantity) filter (where s.shipdate = l.countdate) as that_day,
    sum(s.quantity) filter (where s.shipdate > l.countdate) as since
  from latest l
  join shipped s on s._company_id = l._company_id and s.locationid = l.inventorylocationid and s.itemid = l.itemid
  group by l._company_id, l.inventorylocationid, l.itemid
),
waiting as (
  select o._company_id, o.inventorylocationid, l.itemid, sum(coalesce(l.qtyorder, 0) - coalesce(l.qtyship, 0)) as quantity
  from {{orders}} o
  join {{orderlines}} l on l._company_id = o._company_id and l.orderid = o.id
  where o._deleted_at is null and not coalesce(o.cancel, false) and o.status in ('open', 'partial')
    and l._deleted_at is null and not coalesce(l.cancel, false) and coalesce(l.qtyorder, 0) > coalesce(l.qtyship, 0)
  group by o._company_id, o.inventorylocationid, l.itemid
)
select
  l._company_id as company_id,
  l.inventorylocationid as location_id,
  l.inventorylocation as location,
  l.itemid as item_id,
  i.sku as item,
  i.description,
  l.id as count_id,
  l.status,
  l.countdate as counted_on,
  {{as_of}} - l.countdate as age_days,
  l.counted,
  case when l.countdate is not null then coalesce(s.that_day, 0) end as shipped_that_day,
  case when l.countdate is not null then coalesce(s.since, 0) end as shipped_since,
  case when {{is_present}} then coalesce(w.quantity, 0) end as to_ship
from latest l
left join {{items}} i on i._company_id = l._company_id and i.id = l.itemid and i._deleted_at is null
left join left_since s
  on s._company_id = l._company_id and s.inventorylocationid = l.inventorylocationid and s.itemid = l.itemid
left join waiting w
  on w._company_id = l._company_id and w.inventorylocationid = l.inventorylocationid and w.itemid = l.itemid
