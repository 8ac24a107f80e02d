-- What do we buy from each vendor, month by month?
--
-- One row for each month and vendor.
-- Counts: bills in the month of their accounting date, credits as negative; purchase orders in the month of their date,
-- complete or not.
-- Leaves out: cancelled and deleted bills and purchase orders. Bills name no purchase order: billed and ordered are two
-- figures side by side, not the same purchases. The documents do not show the fields of bills, vendors and purchase
-- orders: theirs are inferred. Amounts are in the company's own currency, since neither carries one.
-- Facts: STATE-11, STATE-12, STATE-14, RES-15, SCOPE-12.
--
-- Indexes: apbills (vendorid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month; empty for records without a date
--   vendor_id bigint: id of the vendor; empty for records without one
--   vendor text: vendorcode
--   vendor_name text: name of the vendor as it is now
--   bills bigint: number of posted bills
--   billed numeric: total of them
--   unposted_bills bigint: number of bills without a ledger voucher
--   unposted numeric: total of them
--   purchase_orders bigint: number of purchase orders
--   ordered numeric: total of them
with purchases as (
  select
    _company_id, vendorid, vendor, billdate as day,
    case when voucherid is not null then coalesce(billtotal, 0) end as billed,
    case when voucherid is null then coalesce(billtotal, 0) end as unposted,
    null::numeric as ordered
  from {{apbills}}
  where _deleted_at is null and not coalesce(cancel, false) and (billdate > {{until}}) is not true
  union all
  select _company_id, vendorid, vendor, orderdate, null, null, coalesce(ordertotal, 0)
  from {{purchaseorders}}
  where _deleted_at is null and not coalesce(cancel, false) and (orderdate > {{until}}) is not true
),
months as (
  select
    _company_id,
    date_trunc('month', day::timestamp)::date as month,
    vendorid,
    max(vendor) as vendor,
    count(billed) as bills,
    coalesce(sum(billed), 0) as billed,
    count(unposted) as unposted_bills,
    coalesce(sum(unposted), 0) as unposted,
    count(ordered) as purchase_orders,
    coalesce(sum(ordered), 0) as ordered
  from purchases
  group by 1, 2, 3
)
select
  m._company_id as company_id, m.month, m.vendorid as vendor_id, m.vendor, n.name as vendor_name,
  m.bills, m.billed, m.unposted_bills, m.unposted, m.purchase_orders, m.ordered
from months m
left join {{vendors}} n on n._company_id = m._company_id and n.id = m.vendorid and n._deleted_at is null
