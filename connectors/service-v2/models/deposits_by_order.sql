-- Which orders have deposits, more than their total or more than was applied?
--
-- One row for each order and currency with deposits.
-- Counts: deposits that are neither cancelled nor deleted; those that the bank returned in the column returned only.
-- Leaves out: cancelled and deleted deposits, and orders without one. Applied is the sum of the payments, neither
-- cancelled nor deleted, that name one of the deposits in orderdepositid; the documents do not say what
-- creditorderdepositid means: it is not counted. Deposits are limited when they are made: over_deposited appears when
-- the order shrinks later. An order that is not there has the total 0. Orders and invoices carry no currency: compare
-- only deposits in the company's own.
-- Facts: ORDERDEPOSITS-04, ORDERDEPOSITS-05, ORDERDEPOSITS-11, ORDERDEPOSITS-20, ORDERDEPOSITS-21, ORDERDEPOSITS-30,
-- ORDERDEPOSITS-33, PAYMENTS-30, PAYMENTS-31, STATE-06, STATE-10, STATE-12, WRITE-15.
--
-- Indexes: orderdeposits (orderid); invoices (orderid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   order_id bigint: id of the order; empty for deposits without one
--   ordertype text: fulfillment, service or rental
--   order_status text: status of the order
--   order_cancelled boolean: whether the order is cancelled, or not there at all
--   orderdate date: date of the order
--   customer_id bigint: id of the order's customer
--   customer text: customercode
--   currency text: currency of the deposits
--   deposit_status text: returned, order cancelled, over-deposited, over-applied, open or applied
--   ordertotal numeric: total of the order
--   deposits bigint: number of deposits that the bank did not return
--   deposited numeric: sum of them
--   over_deposited numeric: deposited minus ordertotal where that is more than zero, else 0
--   applied numeric: payments made from them
--   remaining numeric: deposited minus applied
--   returned numeric: deposits that the bank returned
--   order_invoiced numeric: total of the order's posted invoices
--   order_open numeric: unpaid amount of them
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
deposited as (
  select
    d._company_id, d.orderid, d.currency,
    count(*) filter (where d.returned is distinct from 1) as deposits,
    coalesce(sum(d.amount) filter (where d.returned is distinct from 1), 0) as deposited,
    coalesce(sum(p.applied) filter (where d.returned is distinct from 1), 0) as applied,
    coalesce(sum(d.amount) filter (where d.returned = 1), 0) as returned
  from {{orderdeposits}} d
  left join (
    select _company_id, orderdepositid, sum(amount) as applied
    from {{payments}}
    where orderdepositid is not null and _deleted_at is null and not coalesce(cancel, false)
      and (datereceived > {{until}}) is not true
    group by _company_id, orderdepositid
  ) p on p._company_id = d._company_id and p.orderdepositid = d.id
  where d._deleted_at is null and (d.entrydate::date > {{until}}) is not true and not coalesce(d.cancel, false)
  group by d._company_id, d.orderid, d.currency
)
select
  d._company_id as company_id,
  d.orderid as order_id,
  o.ordertype,
  o.status as order_status,
  coalesce(o.cancel, false) or o.id is null as order_cancelled,
  o.orderdate,
  o.customerid as customer_id,
  o.customer,
  d.currency,
  case
    when d.deposits = 0 then 'returned'
    when coalesce(o.cancel, false) or o.id is null then 'order cancelled'
    when d.deposited > coalesce(o.ordertotal, 0) then 'over-deposited'
    when d.applied > d.deposited then 'over-applied'
    when d.applied < d.deposited then 'open'
    else 'applied'
  end as deposit_status,
  coalesce(o.ordertotal, 0) as ordertotal,
  d.deposits,
  d.deposited,
  greatest(d.deposited - coalesce(o.ordertotal, 0), 0) as over_deposited,
  d.applied,
  d.deposited - d.applied as remaining,
  d.returned,
  coalesce(i.invoiced, 0) as order_invoiced,
  coalesce(i.open, 0) as order_open
from deposited d
left join {{orders}} o on o._company_id = d._company_id and o.id = d.orderid and o._deleted_at is null
left join (
  select i._company_id, i.orderid, sum(m.total) as invoiced, sum(m.total - m.paid) as open
  from {{invoices}} i
  left join paid_by_day p on p._company_id = i._company_id and p.invoiceid = i.id
  cross join lateral (
    -- On the day: a later invoice does not count, but what was paid for it does; a later payment does not.
    select
      case when i.invoicedate > {{until}} then 0 else coalesce(i.invoicetotal, 0) end as total,
      case when i.invoicedate > {{until}} then coalesce(p.received, 0) else coalesce(i.invoicepaid, 0) - coalesce(p.later, 0) end
        as paid
  ) m
  where i.orderid is not null and i._deleted_at is null and not coalesce(i.cancel, false) and i.voucherid is not null
  group by i._company_id, i.orderid
) i on i._company_id = d._company_id and i.orderid = d.orderid
