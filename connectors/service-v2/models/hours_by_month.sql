-- Which hours were worked on service orders, by month, user and type of work?
--
-- One row for each month, user and type of work.
-- Counts: time entries in every status; billed are those whose status is 2, since billing made an order line of them.
-- Leaves out: cancelled and deleted time entries. Entries of cancelled orders count: the hours were worked.
-- The documents name the entries and their status 2, not their fields: hours, date, type of work and user are inferred.
-- Hours name neither a job nor a project, have no price and no cost.
-- On a past day of tributary.as_of, hours_billed and hours_unbilled are empty: the status has no date.
-- Facts: STATE-07, STATE-15, STATE-12, SPECIAL-09, CODE-20, RULE-11, RES-09, RES-16.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the entry's date
--   user_id bigint: id of the user
--   login text: login name of the user
--   worktype_id bigint: id of the type of work
--   worktype text: name of it
--   entries bigint: number of time entries
--   orders bigint: number of service orders
--   hours numeric: hours worked
--   hours_billed numeric: the part of them that is billed
--   hours_unbilled numeric: the rest
select
  t._company_id as company_id,
  date_trunc('month', t.date::timestamp)::date as month,
  t.genuserid as user_id,
  max(u.login) as login,
  t.worktypeid as worktype_id,
  max(w.name) as worktype,
  count(*) as entries,
  count(distinct t.orderid) as orders,
  coalesce(sum(t.hours), 0) as hours,
  case when {{is_present}} then coalesce(sum(t.hours) filter (where t.status = 2), 0) end as hours_billed,
  case when {{is_present}} then coalesce(sum(t.hours) filter (where t.status is distinct from 2), 0) end as hours_unbilled
from {{serviceordertimes}} t
left join {{users}} u on u._company_id = t._company_id and u.id = t.genuserid and u._deleted_at is null
left join {{worktypes}} w on w._company_id = t._company_id and w.id = t.worktypeid and w._deleted_at is null
where t._deleted_at is null and (t.date > {{until}}) is not true and not coalesce(t.cancel, false)
group by 1, 2, t.genuserid, t.worktypeid
