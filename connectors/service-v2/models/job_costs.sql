-- What did each job cost so far, by cost code?
--
-- One row for each job and cost code that a vendor bill is coded to.
-- Counts: coding lines that name a job, of bills with or without a ledger voucher, each separately; jobs that are
-- cancelled or not there (job_cancelled) too, since the money is spent.
-- Leaves out: cancelled and deleted bills, deleted lines (lines have no cancel flag); coding lines without a job.
-- Vendor bills are the only costs that name a job: hours and shipments do not. Retainage lines (isretainer 1) are in no
-- cost, since the documents do not say with which sign; retainage has them. Amounts are those of the lines:
-- curratenumber, a number without a meaning in the documents, is not applied. Lines offer no modifiedsince and are read
-- in full scans.
-- Facts: SCOPE-18, RES-15, APBILLLINES-04, APBILLLINES-05, APBILLLINES-08, APBILLLINES-10, APBILLLINES-13,
-- APBILLLINES-14, APBILLLINES-16, WRITE-17, STATE-11, STATE-12.
--
-- Indexes: apbilllines (apbillid); apbilllines (jobid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   job_id bigint: id of the job
--   job text: name of the job as it is now
--   job_cancelled boolean: whether the job is cancelled, or not there at all
--   customer_id bigint: id of the job's customer
--   customer text: customercode
--   costcode_id bigint: id of the cost code; empty for lines without one
--   costcode text: code of it
--   bills bigint: number of bills
--   lines bigint: number of coding lines
--   posted_cost numeric: sum of the lines of posted bills, without retainage
--   unposted_cost numeric: sum of the lines of bills that are not posted, without retainage
--   retainage numeric: sum of the retainage lines of all bills
--   first_billdate date: date of the first bill
--   last_billdate date: date of the last bill
select
  l._company_id as company_id,
  l.jobid as job_id,
  max(j.name) as job,
  bool_and(j.id is null or coalesce(j.cancel, false)) as job_cancelled,
  max(j.customerid) as customer_id,
  max(j.customer) as customer,
  l.costcodeid as costcode_id,
  max(l.costcode) as costcode,
  count(distinct b.id) as bills,
  count(*) as lines,
  coalesce(sum(l.amount) filter (where b.voucherid is not null and l.isretainer is distinct from 1), 0) as posted_cost,
  coalesce(sum(l.amount) filter (where b.voucherid is null and l.isretainer is distinct from 1), 0) as unposted_cost,
  coalesce(sum(l.amount) filter (where l.isretainer = 1), 0) as retainage,
  min(b.billdate) as first_billdate,
  max(b.billdate) as last_billdate
from {{apbilllines}} l
join {{apbills}} b on b._company_id = l._company_id and b.id = l.apbillid
left join {{jobs}} j on j._company_id = l._company_id and j.id = l.jobid and j._deleted_at is null
where l._deleted_at is null and l.jobid is not null and b._deleted_at is null and (b.billdate > {{until}}) is not true and not coalesce(b.cancel, false)
group by l._company_id, l.jobid, l.costcodeid
