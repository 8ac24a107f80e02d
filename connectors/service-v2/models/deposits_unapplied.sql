-- Which deposits on orders are not applied to an invoice yet?
--
-- One row for each deposit that its payments do not use in full.
-- Counts: deposits that are neither cancelled nor returned by the bank, those of cancelled orders too (order_cancelled):
-- that money must be returned. A deposit whose payments exceed it has a negative amount.
-- Leaves out: cancelled, returned and deleted deposits; deposits applied in full.
-- Applied is the sum of the payments, neither cancelled nor deleted, that name the deposit in orderdepositid. The
-- documents do not say what creditorderdepositid means: it is not counted. An invoice for the deposit itself names no
-- deposit: see order_open, the open amount of the order's posted invoices.
-- Facts: ORDERDEPOSITS-04 to ORDERDEPOSITS-12, ORDERDEPOSITS-20, ORDERDEPOSITS-21, ORDERDEPOSITS-30, PAYMENTS-30,
-- PAYMENTS-31, STATE-06, STATE-10, STATE-12.
--
-- Indexes: invoices (orderid); orderdeposits (orderid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   deposit_id bigint: id of the deposit
--   order_id bigint: id of the order
--   customer_id bigint: id of the order's customer
--   customer text: customercode
--   order_status text: status of the order
--   order_cancelled boolean: whether the order is cancelled, or not there at all
--   entrydate timestamptz: when the deposit was entered; it has no accounting date
--   method bigint: number of the payment method
--   reference text: check number or reference
--   currency text: currency of the deposit
--   is_posted boolean: whether the deposit has a ledger voucher
--   amount numeric: the deposit
--   applied numeric: payments made from it
--   unapplied numeric: amount minus applied
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
)
select
  d._company_id as company_id,
  d.id as deposit_id,
  d.orderid as order_id,
  o.customerid as customer_id,
  o.customer,
  o.status as order_status,
  coalesce(o.cancel, false) or o.id is null as order_cancelled,
  d.entrydate,
  d.payment_method as method,
  d.checkid as reference,
  d.currency,
  d.voucherid is not null as is_posted,
  coalesce(d.amount, 0) as amount,
  coalesce(p.applied, 0) as applied,
  coalesce(d.amount, 0) - coalesce(p.applied, 0) as unapplied,
  coalesce(i.invoiced, 0) as order_invoiced,
  coalesce(i.open, 0) as order_open
from {{orderdeposits}} d
left join {{orders}} o on o._company_id = d._company_id and o.id = d.orderid and o._deleted_at is null
left join (
  select _company_id, orderdepositid, sum(amount) as applied
  from {{payments}}
  where orderdepositid is not null and _deleted_at is null and not coalesce(cancel, false)
    and (datereceived > {{until}}) is not true
  group by _company_id, orderdepositid
) p on p._company_id = d._company_id and p.orderdepositid = d.id
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
where d._deleted_at is null and (d.entrydate::date > {{until}}) is not true and not coalesce(d.cancel, false) and coalesce(d.returned, 0) <> 1
  and coalesce(d.amount, 0) <> coalesce(p.applied, 0)
