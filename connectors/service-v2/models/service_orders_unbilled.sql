-- Which service orders have work that is not billed?
--
-- One row for each service order with hours or shipped quantities that are not billed.
-- Counts: time entries whose status is not 2, the status of hours that became an order line; order lines that shipped
-- more than was billed.
-- Leaves out: quotes; cancelled and deleted orders, lines and time entries; hours on orders that are no service orders,
-- which the service refuses (hours_by_month has all hours).
-- Hours have no price before they are billed, and no cost: amount_unbilled is that of the lines only, in the company's
-- own currency. lines_without_price counts the lines that it does not include.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-07, STATE-12, STATE-15, SPECIAL-09, CODE-20, RULE-11, RES-09, RES-10.
--
-- Indexes: orderlines (orderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   order_id bigint: id of the order
--   status text: status of the order
--   customer_id bigint: id of the customer
--   customer text: customercode
--   location_id bigint: id of the order's location
--   location text: locationcode
--   orderdate date: date of the order
--   age_days integer: days from orderdate to today
--   entries_unbilled bigint: number of time entries that are not billed
--   hours_unbilled numeric: their hours
--   hours_billed numeric: hours of the entries that are billed
--   first_unbilled date: date of the earliest entry that is not billed
--   last_unbilled date: date of the latest entry that is not billed
--   days_unbilled integer: days from first_unbilled to today
--   lines_unbilled bigint: order lines that shipped more than was billed
--   lines_without_price bigint: the lines among them that have no price
--   amount_unbilled numeric: shipped minus billed at the prices of the lines, each rounded to 4 decimals, half away from zero
with worked as (
  select
    _company_id,
    orderid,
    count(*) filter (where status is distinct from 2) as entries_unbilled,
    sum(hours) filter (where status is distinct from 2) as hours_unbilled,
    sum(hours) filter (where status = 2) as hours_billed,
    min(date) filter (where status is distinct from 2) as first_unbilled,
    max(date) filter (where status is distinct from 2) as last_unbilled
  from {{serviceordertimes}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, orderid
),
shipped as (
  select
    _company_id,
    orderid,
    count(*) as lines_unbilled,
    count(*) filter (where priceach is null) as lines_without_price,
    sum(round((coalesce(qtyship, 0) - coalesce(qtybilled, 0)) * priceach, 4)) as amount_unbilled
  from {{orderlines}}
  where _deleted_at is null and not coalesce(cancel, false) and coalesce(qtyship, 0) > coalesce(qtybilled, 0)
  group by _company_id, orderid
)
select
  o._company_id as company_id,
  o.id as order_id,
  o.status,
  o.customerid as customer_id,
  o.customer,
  o.inventorylocationid as location_id,
  o.inventorylocation as location,
  o.orderdate,
  {{as_of}} - o.orderdate as age_days,
  coalesce(w.entries_unbilled, 0) as entries_unbilled,
  coalesce(w.hours_unbilled, 0) as hours_unbilled,
  coalesce(w.hours_billed, 0) as hours_billed,
  w.first_unbilled,
  w.last_unbilled,
  {{as_of}} - w.first_unbilled as days_unbilled,
  coalesce(s.lines_unbilled, 0) as lines_unbilled,
  coalesce(s.lines_without_price, 0) as lines_without_price,
  coalesce(s.amount_unbilled, 0) as amount_unbilled
from {{orders}} o
left join worked w on w._company_id = o._company_id and w.orderid = o.id
left join shipped s on s._company_id = o._company_id and s.orderid = o.id
where o._deleted_at is null and not coalesce(o.cancel, false) and o.ordertype = 'service'
  and coalesce(o.status, '') <> 'quote' and (w.entries_unbilled > 0 or s.lines_unbilled > 0)
