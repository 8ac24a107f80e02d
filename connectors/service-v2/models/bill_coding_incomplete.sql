-- Which vendor bills are not coded in full?
--
-- One row for each bill whose coding lines do not add up to its total, or have no ledger account.
-- Counts: bills with or without a ledger voucher; on a posted one (is_posted) no line can be added any more.
-- Leaves out: cancelled and deleted bills, deleted lines (lines have no cancel flag); bills coded in full.
-- Lines offer no modifiedsince and are read in full scans: the bill's own undistributed may be newer than they are.
-- Amounts are in the company's own currency, since bills carry none.
-- Facts: STATE-11, STATE-12, APBILLLINES-04 to APBILLLINES-06, APBILLLINES-16, WRITE-17, WRITE-19.
--
-- Indexes: apbilllines (apbillid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   bill_id bigint: id of the bill
--   vendor_id bigint: id of the vendor
--   vendor text: vendorcode
--   billdate date: accounting date of the bill
--   age_days integer: days from billdate to today (as_of())
--   is_posted boolean: whether the bill has a ledger voucher
--   billtotal numeric: total amount of the bill
--   coded numeric: sum of its lines
--   uncoded numeric: billtotal minus coded; negative when more is coded than the bill holds
--   undistributed numeric: amount that is not coded, as the bill states it
--   lines bigint: number of lines
--   lines_without_account bigint: lines without a ledger account
select
  b._company_id as company_id,
  b.id as bill_id,
  b.vendorid as vendor_id,
  b.vendor,
  b.billdate,
  {{as_of}} - b.billdate as age_days,
  b.voucherid is not null as is_posted,
  coalesce(b.billtotal, 0) as billtotal,
  coalesce(l.coded, 0) as coded,
  coalesce(b.billtotal, 0) - coalesce(l.coded, 0) as uncoded,
  b.undistributed,
  coalesce(l.lines, 0) as lines,
  coalesce(l.lines_without_account, 0) as lines_without_account
from {{apbills}} b
left join (
  select
    _company_id,
    apbillid,
    count(*) as lines,
    count(*) filter (where glaccountid is null) as lines_without_account,
    sum(amount) as coded
  from {{apbilllines}}
  where _deleted_at is null
  group by _company_id, apbillid
) l on l._company_id = b._company_id and l.apbillid = b.id
where b._deleted_at is null and (b.billdate > {{until}}) is not true and not coalesce(b.cancel, false)
  and (coalesce(b.billtotal, 0) <> coalesce(l.coded, 0) or coalesce(l.lines_without_account, 0) > 0)
