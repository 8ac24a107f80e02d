-- The system figures of a daily close agree with the payments of its day.
--
-- Severity: warning
-- Counts: payments on their accounting date, returned ones included, since they came in that day; several closes of a
-- day, location and currency as their sum. Cash is method 1; checks (2) and cards (3 and 5) are compared together, since
-- the point of sale writes 2 for cards too.
-- Leaves out: cancelled and deleted payments and closes; days without a close; other methods, which are in no drawer.
-- Names: each close of the day.
-- Facts: PAYMENTS-07, PAYMENTS-08, PAYMENTS-10, PAYMENTS-21, PAYMENTS-33, ARDAILYCLOSES-04, ARDAILYCLOSES-05,
-- ARDAILYCLOSES-16 to ARDAILYCLOSES-19, ARDAILYCLOSES-21.
with closes as (
  select
    _company_id, closedate as day, inventorylocationid as location_id, currency, array_agg(id) as ids,
    sum(coalesce(sys_cash, 0)) as cash, sum(coalesce(sys_checks, 0) + coalesce(sys_cc, 0)) as others
  from {{ardailycloses}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, closedate, inventorylocationid, currency
),
received as (
  select
    _company_id, datereceived as day, inventorylocationid as location_id, currency,
    coalesce(sum(amount) filter (where paymeth = 1), 0) as cash,
    coalesce(sum(amount) filter (where paymeth in (2, 3, 5)), 0) as others
  from {{payments}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, datereceived, inventorylocationid, currency
)
select
  c._company_id as company_id,
  'ardailycloses' as resource,
  unnest(c.ids) as id,
  format(
    'the close of %s has %s in cash and %s in checks and cards, but the payments are %s and %s',
    c.day, c.cash, c.others, coalesce(r.cash, 0), coalesce(r.others, 0)
  ) as detail
from closes c
left join received r on r._company_id = c._company_id and r.day = c.day
  and (r.location_id, r.currency) is not distinct from (c.location_id, c.currency)
where c.cash <> coalesce(r.cash, 0) or c.others <> coalesce(r.others, 0)
