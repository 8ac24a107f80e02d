-- The deposits on an order are not more than its total.
--
-- Severity: warning
-- Counts: deposits that are neither cancelled, returned by the bank nor deleted.
-- Leaves out: cancelled and deleted orders, whose deposits are to be returned.
-- Names: the order. Its total may have become smaller after the deposit.
-- Facts: ORDERDEPOSITS-04, ORDERDEPOSITS-05, ORDERDEPOSITS-11, ORDERDEPOSITS-21, ORDERDEPOSITS-33, WRITE-15.
select
  o._company_id as company_id,
  'orders' as resource,
  o.id,
  format(
    'order %s has the total %s, but its %s deposits add up to %s', o.id, coalesce(o.ordertotal, 0), d.deposits, d.total
  ) as detail
from (
  select _company_id, orderid, count(*) as deposits, sum(amount) as total
  from {{orderdeposits}}
  where _deleted_at is null and not coalesce(cancel, false) and coalesce(returned, 0) <> 1
  group by _company_id, orderid
) d
join {{orders}} o on o._company_id = d._company_id and o.id = d.orderid
where o._deleted_at is null and not coalesce(o.cancel, false) and d.total > coalesce(o.ordertotal, 0)
