-- How much did each vendor bill us, by the age of the bills?
--
-- One row for each vendor with bills; the amounts of vendor_bills by bucket.
-- Counts: bills with a ledger voucher in the buckets, settled or not; those without one in the column unposted.
-- Leaves out: cancelled and deleted bills. It is no list of what we owe: the API shows neither payments to vendors nor
-- due dates. The buckets say how old the bills are, from the bill's date to today. The documents do not show the fields
-- of bills and vendors: theirs are inferred. Amounts are in the company's own currency, since bills carry none. Today
-- is as_of(): the session's current date, or tributary.as_of where that is set: then later bills do not count.
-- Facts: STATE-11, STATE-12, RES-15, SCOPE-12, INVOICETERMS-11.
--
-- Indexes: apbills (vendorid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   vendor_id bigint: id of the vendor; empty for bills without one
--   vendor text: vendorcode
--   vendor_name text: name of the vendor as it is now
--   as_of date: the day that the ages are counted to
--   bills bigint: number of posted bills
--   up_to_30 numeric: up to 30 days old, later dates included
--   days_31_60 numeric: 31 to 60 days old
--   days_61_90 numeric: 61 to 90 days old
--   over_90 numeric: more than 90 days old
--   undated numeric: bills without a date
--   credit numeric: credits, negative
--   total numeric: sum of all buckets
--   oldest_date date: earliest date of a posted bill that is no credit
--   unposted_bills bigint: number of bills without a ledger voucher
--   unposted numeric: total of them
with bills as (
  select
    b._company_id,
    b.vendorid,
    b.vendor,
    n.name,
    b.billdate,
    {{as_of}} - b.billdate as age,
    b.voucherid is not null as is_posted,
    coalesce(b.billtotal, 0) as amount
  from {{apbills}} b
  left join {{vendors}} n on n._company_id = b._company_id and n.id = b.vendorid and n._deleted_at is null
  where b._deleted_at is null and (b.billdate > {{until}}) is not true and not coalesce(b.cancel, false)
)
select
  _company_id as company_id,
  vendorid as vendor_id,
  max(vendor) as vendor,
  max(name) as vendor_name,
  {{as_of}} as as_of,
  count(*) filter (where is_posted) as bills,
  coalesce(sum(amount) filter (where is_posted and amount >= 0 and age <= 30), 0) as up_to_30,
  coalesce(sum(amount) filter (where is_posted and amount >= 0 and age between 31 and 60), 0) as days_31_60,
  coalesce(sum(amount) filter (where is_posted and amount >= 0 and age between 61 and 90), 0) as days_61_90,
  coalesce(sum(amount) filter (where is_posted and amount >= 0 and age > 90), 0) as over_90,
  coalesce(sum(amount) filter (where is_posted and amount >= 0 and age is null), 0) as undated,
  coalesce(sum(amount) filter (where is_posted and amount < 0), 0) as credit,
  coalesce(sum(amount) filter (where is_posted), 0) as total,
  min(billdate) filter (where is_posted and amount >= 0) as oldest_date,
  count(*) filter (where not is_posted) as unposted_bills,
  coalesce(sum(amount) filter (where not is_posted), 0) as unposted
from bills
group by _company_id, vendorid
