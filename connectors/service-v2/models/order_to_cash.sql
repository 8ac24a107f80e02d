-- How long does it take from an order to its payment?
--
-- One row for each order.
-- Counts: orders in every status but quote; their shipments and posted invoices that are neither cancelled nor deleted,
-- and the payments on those invoices that are neither cancelled nor returned.
-- Leaves out: quotes, cancelled and deleted orders; invoices that name no order.
-- paid_on is set only when the order is billed in full, something was invoiced, and nothing is open. Orders have
-- no date of confirmation: days are counted from orderdate. Amounts are in the company's own currency.
-- Facts: STATE-01, STATE-02, STATE-03, STATE-10, STATE-12, STATE-16, SHIPMENTS-06, PAYMENTS-07.
--
-- Indexes: shipments (orderid); invoices (orderid); payments (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   order_id bigint: id of the order
--   ordertype text: fulfillment, service or rental
--   status text: unconfirmed, open, partial or billed; what else the service may say
--   customer_id bigint: id of the customer
--   customer text: customercode
--   ordertotal numeric: total amount of the order
--   orderdate date: date of the order
--   first_shipped date: date of the first shipment
--   last_shipped date: date of the last shipment
--   first_invoiced date: date of the first posted invoice
--   last_invoiced date: date of the last posted invoice
--   last_paid date: accounting date of the last payment
--   invoiced numeric: total of the posted invoices
--   paid numeric: the paid part of it
--   paid_on date: when the order was paid in full; empty while it is not
--   days_to_ship integer: days from orderdate to first_shipped
--   days_to_invoice integer: days from orderdate to first_invoiced
--   days_to_cash integer: days from orderdate to paid_on
with paid_by_day as (
  -- Payments on either side of the day; none are read without one.
  select
    _company_id, invoiceid,
    coalesce(sum(amount) filter (where datereceived > {{until}}), 0) as later,
    coalesce(sum(amount) filter (where (datereceived > {{until}}) is not true), 0) as received
  from {{payments}}
  where {{until}} < 'infinity' and invoiceid is not null and _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, invoiceid
),
shipped as (
  select _company_id, orderid, min(shipdate) as first_shipped, max(shipdate) as last_shipped
  from {{shipments}}
  where (shipdate > {{until}}) is not true and _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, orderid
),
posted as (
  select
    i._company_id, i.id, i.orderid, i.invoicedate, i.invoicetotal,
    coalesce(i.invoicepaid, 0) - coalesce(p.later, 0) as invoicepaid, coalesce(i.invoicedate > {{until}}, false) as is_later
  from {{invoices}} i
  left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
  where i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null and i.orderid is not null
),
invoiced as (
  select
    _company_id,
    orderid,
    min(invoicedate) filter (where not is_later) as first_invoiced,
    max(invoicedate) filter (where not is_later) as last_invoiced,
    sum(coalesce(invoicetotal, 0)) filter (where not is_later) as invoiced,
    sum(invoicepaid) filter (where not is_later) as paid,
    bool_or(is_later) as has_later
  from posted
  group by _company_id, orderid
),
paid as (
  select i._company_id, i.orderid, max(p.datereceived) as last_paid
  from posted i
  join {{payments}} p on p._company_id = i._company_id and p.invoiceid = i.id
  where not i.is_later and p._deleted_at is null and (p.datereceived > {{until}}) is not true and not coalesce(p.cancel, false) and coalesce(p.returned, 0) <> 1
  group by i._company_id, i.orderid
)
select
  o._company_id as company_id,
  o.id as order_id,
  o.ordertype,
  o.status,
  o.customerid as customer_id,
  o.customer,
  o.ordertotal,
  o.orderdate,
  s.first_shipped,
  s.last_shipped,
  i.first_invoiced,
  i.last_invoiced,
  p.last_paid,
  coalesce(i.invoiced, 0) as invoiced,
  coalesce(i.paid, 0) as paid,
  f.paid_on,
  s.first_shipped - o.orderdate as days_to_ship,
  i.first_invoiced - o.orderdate as days_to_invoice,
  f.paid_on - o.orderdate as days_to_cash
from {{orders}} o
left join shipped s on s._company_id = o._company_id and s.orderid = o.id
left join invoiced i on i._company_id = o._company_id and i.orderid = o.id
left join paid p on p._company_id = o._company_id and p.orderid = o.id
cross join lateral (
  select case when o.status = 'billed' and not i.has_later and i.invoiced > 0 and i.paid >= i.invoiced then p.last_paid end as paid_on
) f
where o._deleted_at is null and (o.orderdate > {{until}}) is not true and not coalesce(o.cancel, false) and coalesce(o.status, '') <> 'quote'
