-- Which shipments were not invoiced?
--
-- One row for each shipment without an invoice.
-- Counts: shipments whose invoiceid is empty, or whose invoice is dated after the day of tributary.as_of; the service empties it again when the invoice is cancelled.
-- Leaves out: cancelled and deleted shipments and shipment lines. A shipment on a draft invoice is invoiced.
-- The amount is at the prices of the order lines; lines_without_price counts those whose order line is missing or has
-- no price, which the amount does not include. It is in the company's own currency, since orders carry none.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: SHIPMENTS-04 to SHIPMENTS-07, SHIPMENTS-12, SHIPMENTS-13, SHIPMENTS-15, STATE-12, STATE-13, RES-11, RES-12.
--
-- Indexes: shipmentlines (shipmentid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   shipment_id bigint: id of the shipment
--   order_id bigint: id of the order
--   ordertype text: fulfillment, service or rental
--   order_status text: status of the order
--   customer_id bigint: id of the order's customer
--   customer text: customercode
--   shipdate date: when it went out
--   days_waiting integer: days from shipdate to today
--   location_id bigint: id of the location
--   location text: locationcode
--   carrierservice text: code of the carrier service
--   lines bigint: number of shipment lines
--   lines_without_price bigint: lines that the amount does not include
--   quantity numeric: sum of the quantities
--   amount numeric: quantities at the prices of the order lines, each rounded to 4 decimals, half away from zero
--   age_bucket text: undated, future, 0-7, 8-30, 31-60, 61-90 or over 90, by days_waiting
select
  s._company_id as company_id,
  s.id as shipment_id,
  s.orderid as order_id,
  o.ordertype,
  o.status as order_status,
  o.customerid as customer_id,
  o.customer,
  s.shipdate,
  {{as_of}} - s.shipdate as days_waiting,
  s.locationid as location_id,
  s.location,
  s.carrierservice,
  coalesce(l.lines, 0) as lines,
  coalesce(l.lines_without_price, 0) as lines_without_price,
  coalesce(l.quantity, 0) as quantity,
  coalesce(l.amount, 0) as amount,
  case
    when s.shipdate is null then 'undated'
    when {{as_of}} - s.shipdate < 0 then 'future'
    when {{as_of}} - s.shipdate <= 7 then '0-7'
    when {{as_of}} - s.shipdate <= 30 then '8-30'
    when {{as_of}} - s.shipdate <= 60 then '31-60'
    when {{as_of}} - s.shipdate <= 90 then '61-90'
    else 'over 90'
  end as age_bucket
from {{shipments}} s
left join {{orders}} o on o._company_id = s._company_id and o.id = s.orderid and o._deleted_at is null
left join (
  select
    sl._company_id,
    sl.shipmentid,
    count(*) as lines,
    count(*) filter (where ol.priceach is null) as lines_without_price,
    sum(sl.quantity) as quantity,
    sum(round(sl.quantity * ol.priceach, 4)) as amount
  from {{shipmentlines}} sl
  left join {{orderlines}} ol on ol._company_id = sl._company_id and ol.id = sl.orderlineid and ol._deleted_at is null
  where sl._deleted_at is null and not coalesce(sl.cancel, false)
  group by sl._company_id, sl.shipmentid
) l on l._company_id = s._company_id and l.shipmentid = s.id
left join {{invoices}} i on i._company_id = s._company_id and i.id = s.invoiceid and i._deleted_at is null
where s._deleted_at is null and not coalesce(s.cancel, false) and (s.shipdate > {{until}}) is not true
  and (s.invoiceid is null or i.invoicedate > {{until}})
