-- Which items left each location, month by month?
--
-- One row for each month, location and item.
-- Counts: shipment lines, by the month of the shipment's date.
-- Leaves out: cancelled and deleted shipments and shipment lines.
-- The item is that of the order line; empty when the line is missing or has no item. The documents call the location of
-- a shipment the one "to receive into"; it is read as the one that it ships from.
-- Facts: SHIPMENTS-06, SHIPMENTS-07, SHIPMENTS-12, SHIPMENTS-18, RES-11, RES-12, WRITE-01, STATE-12.
--
-- Indexes: shipmentlines (shipmentid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of shipdate
--   location_id bigint: id of the location
--   location text: locationcode
--   item_id bigint: id of the item
--   item text: sku
--   shipments bigint: number of shipments
--   quantity numeric: quantity shipped
select
  s._company_id as company_id,
  date_trunc('month', s.shipdate::timestamp)::date as month,
  s.locationid as location_id,
  max(s.location) as location,
  ol.itemid as item_id,
  max(ol.item) as item,
  count(distinct s.id) as shipments,
  coalesce(sum(sl.quantity), 0) as quantity
from {{shipments}} s
join {{shipmentlines}} sl on sl._company_id = s._company_id and sl.shipmentid = s.id
left join {{orderlines}} ol on ol._company_id = sl._company_id and ol.id = sl.orderlineid and ol._deleted_at is null
where s._deleted_at is null and (s.shipdate > {{until}}) is not true and not coalesce(s.cancel, false)
  and sl._deleted_at is null and not coalesce(sl.cancel, false)
group by 1, 2, s.locationid, ol.itemid
