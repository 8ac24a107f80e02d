-- Do the day's payments agree with the daily close?
--
-- One row for each day, location and currency that has payments or a close.
-- Counts: payments on their accounting date, returned ones included, since they came in that day; several closes of a
-- day and location as their sum.
-- Leaves out: cancelled and deleted payments and closes; deposits on orders, which have neither an accounting date nor
-- a location that could be compared.
-- Cash is method 1, checks 2, cards 3 and 5; all other methods are other and not in a drawer. The point of sale writes
-- 2 for credit cards too: compare checks and cards together, as checks_and_cards_difference does.
-- A payment and a close are matched only when day, location and currency are the same, or both empty.
-- Facts: PAYMENTS-07, PAYMENTS-08, PAYMENTS-10, PAYMENTS-21, PAYMENTS-33, ARDAILYCLOSES-04 to ARDAILYCLOSES-21,
-- ARDAILYCLOSES-23.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   day date: accounting date of the payments, closedate of the close
--   location_id bigint: id of the location
--   location text: locationcode
--   currency text: currency
--   status text: no close, no payments, agrees or differs (of the two differences below)
--   payments bigint: number of payments
--   cash numeric: payments in cash
--   checks numeric: payments by check (and cards of the point of sale)
--   cards numeric: payments by credit card or card terminal
--   other numeric: payments by any other method, write-offs included
--   closes bigint: number of closes
--   sys_cash numeric: cash by the close's system figure
--   sys_checks numeric: checks by the close's system figure
--   sys_cc numeric: cards by the close's system figure
--   gl_cash numeric: cash by the close's ledger figure
--   gl_checks numeric: checks by the close's ledger figure
--   gl_cc numeric: cards by the close's ledger figure
--   actual_cash numeric: cash that was counted
--   actual_checks numeric: checks that were counted
--   actual_cc numeric: cards that were counted
--   overshort numeric: over or short as the close says
--   deposited numeric: amount deposited, as the close states it
--   cash_difference numeric: sys_cash minus cash; empty without a close
--   checks_and_cards_difference numeric: sys_checks and sys_cc minus checks and cards; empty without a close
with both_sides as (
  select
    p._company_id,
    p.datereceived as day,
    p.inventorylocationid as location_id,
    p.inventorylocation as location,
    p.currency,
    1 as payments,
    case when p.paymeth = 1 then p.amount end as cash,
    case when p.paymeth = 2 then p.amount end as checks,
    case when p.paymeth in (3, 5) then p.amount end as cards,
    case when coalesce(p.paymeth, 0) not in (1, 2, 3, 5) then p.amount end as other,
    0 as closes,
    null::numeric as sys_cash, null::numeric as sys_checks, null::numeric as sys_cc,
    null::numeric as gl_cash, null::numeric as gl_checks, null::numeric as gl_cc,
    null::numeric as actual_cash, null::numeric as actual_checks, null::numeric as actual_cc,
    null::numeric as overshort, null::numeric as deposited
  from {{payments}} p
  where p._deleted_at is null and (p.datereceived > {{until}}) is not true and not coalesce(p.cancel, false)
  union all
  select
    d._company_id, d.closedate, d.inventorylocationid, d.inventorylocation, d.currency,
    0, null, null, null, null,
    1, d.sys_cash, d.sys_checks, d.sys_cc, d.gl_cash, d.gl_checks, d.gl_cc, d.actualcash, d.actualchecks, d.actualcc,
    d.overshort, d.depositeamount
  from {{ardailycloses}} d
  where d._deleted_at is null and (d.closedate > {{until}}) is not true and not coalesce(d.cancel, false)
),
days as (
  select
    _company_id, day, location_id, max(location) as location, currency,
    sum(payments) as payments,
    coalesce(sum(cash), 0) as cash, coalesce(sum(checks), 0) as checks,
    coalesce(sum(cards), 0) as cards, coalesce(sum(other), 0) as other,
    sum(closes) as closes,
    sum(sys_cash) as sys_cash, sum(sys_checks) as sys_checks, sum(sys_cc) as sys_cc,
    sum(gl_cash) as gl_cash, sum(gl_checks) as gl_checks, sum(gl_cc) as gl_cc,
    sum(actual_cash) as actual_cash, sum(actual_checks) as actual_checks, sum(actual_cc) as actual_cc,
    sum(overshort) as overshort, sum(deposited) as deposited
  from both_sides
  group by _company_id, day, location_id, currency
)
select
  _company_id as company_id, day, location_id, location, currency,
  case
    when closes = 0 then 'no close'
    when payments = 0 then 'no payments'
    when coalesce(sys_cash, 0) = cash and coalesce(sys_checks, 0) + coalesce(sys_cc, 0) = checks + cards then 'agrees'
    else 'differs'
  end as status,
  payments, cash, checks, cards, other, closes,
  sys_cash, sys_checks, sys_cc, gl_cash, gl_checks, gl_cc, actual_cash, actual_checks, actual_cc, overshort, deposited,
  case when closes > 0 then coalesce(sys_cash, 0) - cash end as cash_difference,
  case
    when closes > 0 then coalesce(sys_checks, 0) + coalesce(sys_cc, 0) - checks - cards
  end as checks_and_cards_difference
from days
