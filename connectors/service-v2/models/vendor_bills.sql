-- How old is each vendor bill, and what does it withhold?
--
-- One row for each bill, settled or not: the API shows no payments to vendors.
-- Counts: bills with and without a ledger voucher (is_posted); credits, with a negative total, in the bucket credit.
-- Leaves out: cancelled and deleted bills, deleted coding lines (lines have no cancel flag). The API shows neither a
-- due date nor a paid amount: neither bills nor vendors name terms, although terms can be marked for payables. The age
-- counts from the bill's date. To assume terms, add their net days to billdate. Withheld is the sum of the coding lines
-- marked as retainage; lines are read in full scans, so that they may be older than their bill. The documents do not
-- show the fields of bills, vendors and vouchers: theirs are inferred. Amounts are in the company's own currency, since
-- bills carry none. Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: STATE-11, STATE-12, RES-15, SCOPE-12, INVOICETERMS-11, APBILLLINES-04, APBILLLINES-05, APBILLLINES-13,
-- APBILLLINES-16.
--
-- Indexes: apbilllines (apbillid); apbills (vendorid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   bill_id bigint: id of the bill
--   vendor_id bigint: id of the vendor
--   vendor text: vendorcode
--   vendor_name text: name of the vendor as it is now
--   billdate date: accounting date of the bill
--   age_days integer: days from billdate to today; negative for a later date
--   bucket text: credit, undated, up to 30, 31-60, 61-90 or over 90 days
--   is_posted boolean: whether the bill has a ledger voucher
--   posted_on date: accounting date of the voucher
--   billtotal numeric: total amount of the bill
--   withheld numeric: retainage, part of the total
select
  b._company_id as company_id,
  b.id as bill_id,
  b.vendorid as vendor_id,
  b.vendor,
  n.name as vendor_name,
  b.billdate,
  {{as_of}} - b.billdate as age_days,
  case
    when b.billtotal < 0 then 'credit'
    when b.billdate is null then 'undated'
    when {{as_of}} - b.billdate <= 30 then 'up to 30'
    when {{as_of}} - b.billdate <= 60 then '31-60'
    when {{as_of}} - b.billdate <= 90 then '61-90'
    else 'over 90'
  end as bucket,
  b.voucherid is not null as is_posted,
  v.date as posted_on,
  coalesce(b.billtotal, 0) as billtotal,
  coalesce(l.withheld, 0) as withheld
from {{apbills}} b
left join {{vendors}} n on n._company_id = b._company_id and n.id = b.vendorid and n._deleted_at is null
left join {{vouchers}} v on v._company_id = b._company_id and v.id = b.voucherid and v._deleted_at is null
left join (
  select _company_id, apbillid, sum(amount) as withheld
  from {{apbilllines}}
  where _deleted_at is null and isretainer = 1
  group by _company_id, apbillid
) l on l._company_id = b._company_id and l.apbillid = b.id
where b._deleted_at is null and (b.billdate > {{until}}) is not true and not coalesce(b.cancel, false)
