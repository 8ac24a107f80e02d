-- What did each job cost, and what was drawn on it?
--
-- One row for each job, cancelled ones included (is_cancelled), since their costs and draws stay.
-- Counts: draws on the job; coding lines of vendor bills that name the job, as in job_costs.
-- Leaves out: deleted jobs; cancelled and deleted draws and bills, deleted coding lines.
-- Jobs have no status, budget or contract amount, so that no degree of completion can be given. Draws have an amount
-- only: no date, and no invoice or payment. Retainage lines (isretainer 1) are in no cost, since the documents do not say
-- with which sign. Amounts are in the company's own currency, since jobs, draws and bills carry none.
-- Facts: SCOPE-18, RES-15, APBILLLINES-04, APBILLLINES-05, APBILLLINES-08, APBILLLINES-13, APBILLLINES-16, WRITE-17,
-- STATE-11, STATE-12.
--
-- Indexes: apbilllines (apbillid); apbilllines (jobid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   job_id bigint: id of the job
--   job text: name of the job
--   is_cancelled boolean: whether the job is cancelled
--   customer_id bigint: id of the customer
--   customer text: customercode
--   draws bigint: number of draws
--   drawn numeric: sum of the draws
--   bills bigint: number of vendor bills coded to the job
--   posted_cost numeric: sum of the coding lines of posted bills, without retainage
--   unposted_cost numeric: sum of the coding lines of bills that are not posted, without retainage
--   retainage numeric: sum of the retainage lines of all bills
--   last_billdate date: date of the last bill
--   drawn_minus_cost numeric: drawn minus posted_cost and unposted_cost
select
  j._company_id as company_id,
  j.id as job_id,
  j.name as job,
  coalesce(j.cancel, false) as is_cancelled,
  j.customerid as customer_id,
  j.customer,
  coalesce(d.draws, 0) as draws,
  coalesce(d.drawn, 0) as drawn,
  coalesce(c.bills, 0) as bills,
  coalesce(c.posted_cost, 0) as posted_cost,
  coalesce(c.unposted_cost, 0) as unposted_cost,
  coalesce(c.retainage, 0) as retainage,
  c.last_billdate,
  coalesce(d.drawn, 0) - coalesce(c.posted_cost, 0) - coalesce(c.unposted_cost, 0) as drawn_minus_cost
from {{jobs}} j
left join (
  select _company_id, jobid, count(*) as draws, sum(amount) as drawn
  from {{jobdraws}}
  where _deleted_at is null and not coalesce(cancel, false) and (entrydate::date > {{until}}) is not true
  group by _company_id, jobid
) d on d._company_id = j._company_id and d.jobid = j.id
left join (
  select
    l._company_id,
    l.jobid,
    count(distinct b.id) as bills,
    sum(l.amount) filter (where b.voucherid is not null and l.isretainer is distinct from 1) as posted_cost,
    sum(l.amount) filter (where b.voucherid is null and l.isretainer is distinct from 1) as unposted_cost,
    sum(l.amount) filter (where l.isretainer = 1) as retainage,
    max(b.billdate) as last_billdate
  from {{apbilllines}} l
  join {{apbills}} b on b._company_id = l._company_id and b.id = l.apbillid
  where l._deleted_at is null and l.jobid is not null and b._deleted_at is null and (b.billdate > {{until}}) is not true and not coalesce(b.cancel, false)
  group by l._company_id, l.jobid
) c on c._company_id = j._company_id and c.jobid = j.id
where j._deleted_at is null
