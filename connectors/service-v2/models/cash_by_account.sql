-- What money came in on which day, by which method, into which account?
--
-- One row for each day, location, method, account and currency.
-- Counts: payments on their accounting date; deposits on orders on the date of their ledger voucher, since they have no
-- accounting date of their own, and without a location; those that the bank returned too, since they came in that day.
-- Leaves out: cancelled and deleted payments and deposits; write-offs (method 99), which are no money; closes of days
-- without a payment (daily_close_check has them). A payment made from a deposit (orderdepositid) is in paid, but not in
-- received: its money came in with the deposit. Returned, banked, cleared and bank_fees are of the money received;
-- banked names a bank deposit, cleared has a date of the bank reconciliation. Bank reconciliation changes no
-- modifiedsince of payments: a full scan finds it. The daily closes have neither accounts nor methods of their own, but
-- cash, checks and cards. The point of sale writes 2 for credit cards too: kind joins checks and cards. closed and
-- close_difference are those of the day, location, currency and kind, the same in each of its rows: do not add them up.
-- They are the differences of daily_close_check. The documents do not show the fields of vouchers: theirs are inferred.
-- Facts: PAYMENTS-05 to PAYMENTS-08, PAYMENTS-10, PAYMENTS-13, PAYMENTS-15, PAYMENTS-21, PAYMENTS-22, PAYMENTS-25,
-- PAYMENTS-30, PAYMENTS-33, PAYMENTS-45, ORDERDEPOSITS-05, ORDERDEPOSITS-06, ORDERDEPOSITS-10, ORDERDEPOSITS-13,
-- ORDERDEPOSITS-18 to ORDERDEPOSITS-22, ORDERDEPOSITS-32, ARDAILYCLOSES-04, ARDAILYCLOSES-05, ARDAILYCLOSES-15 to
-- ARDAILYCLOSES-17, ARDAILYCLOSES-19.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   day date: accounting date; empty for records without one
--   location_id bigint: id of the location of the payments; empty for deposits
--   location text: locationcode
--   method bigint: number of the payment method
--   method_name text: its name; other for a number that is not documented
--   account_id bigint: id of the bank account that it was deposited to (checkaccount, of deposits checkacct)
--   account text: name of that account
--   currency text: currency
--   payments bigint: number of payments
--   paid numeric: sum of them
--   from_deposits numeric: the part of paid that was made from deposits
--   deposits bigint: number of deposits on orders
--   deposited numeric: sum of them
--   received numeric: paid minus from_deposits plus deposited
--   returned numeric: the part of received that the bank returned
--   banked numeric: the part of received that is in a bank deposit
--   cleared numeric: the part of received that the bank reconciliation cleared
--   bank_fees numeric: bank fees of the money received
--   kind text: cash, checks and cards, or other
--   closes bigint: number of daily closes of the day, location and currency
--   closed numeric: the closes' system figure of the kind; empty without a close, and for other
--   close_difference numeric: closed minus all payments of the day, location, currency and kind
with money as (
  select
    p._company_id, p.datereceived as day, p.inventorylocationid, p.inventorylocation, coalesce(p.paymeth, 0) as method,
    p.checkaccountid as accountid, p.checkaccount as account, p.currency,
    1 as payments, p.amount as paid, case when p.orderdepositid is not null then p.amount end as from_deposits,
    0 as deposits, null::numeric as deposited,
    case when p.orderdepositid is null then p.amount end as received,
    p.returned, p.bankdepositid, p.bankstatement_cleardate,
    case when p.orderdepositid is null then p.bankfee_amount end as bank_fees
  from {{payments}} p
  where p._deleted_at is null and (p.datereceived > {{until}}) is not true and not coalesce(p.cancel, false) and p.paymeth is distinct from 99
  union all
  select
    d._company_id, v.date, null, null, coalesce(d.payment_method, 0), d.checkacctid, d.checkacct, d.currency,
    0, null, null, 1, d.amount, d.amount, d.returned, d.bankdepositid, d.bankstatement_cleardate, d.bankfee_amount
  from {{orderdeposits}} d
  left join {{vouchers}} v on v._company_id = d._company_id and v.id = d.voucherid and v._deleted_at is null
  where d._deleted_at is null and (v.date > {{until}}) is not true and not coalesce(d.cancel, false) and d.payment_method is distinct from 99
),
days as (
  select
    _company_id, day, inventorylocationid, max(inventorylocation) as inventorylocation, method, accountid,
    max(account) as account, currency,
    case when method = 1 then 'cash' when method in (2, 3, 5) then 'checks and cards' else 'other' end as kind,
    sum(payments) as payments, coalesce(sum(paid), 0) as paid, coalesce(sum(from_deposits), 0) as from_deposits,
    sum(deposits) as deposits, coalesce(sum(deposited), 0) as deposited, coalesce(sum(received), 0) as received,
    coalesce(sum(received) filter (where returned = 1), 0) as returned,
    coalesce(sum(received) filter (where bankdepositid is not null), 0) as banked,
    coalesce(sum(received) filter (where bankstatement_cleardate <= {{until}}), 0) as cleared,
    coalesce(sum(bank_fees), 0) as bank_fees
  from money
  group by _company_id, day, inventorylocationid, method, accountid, currency
),
kinds as (
  select *, sum(paid) over (partition by _company_id, day, inventorylocationid, currency, kind) as paid_of_kind
  from days
),
closes as (
  select
    _company_id, closedate, inventorylocationid, currency, count(*) as closes,
    coalesce(sum(sys_cash), 0) as cash, coalesce(sum(sys_checks), 0) + coalesce(sum(sys_cc), 0) as checks_and_cards
  from {{ardailycloses}}
  where _deleted_at is null and not coalesce(cancel, false) and (closedate > {{until}}) is not true
  group by 1, 2, 3, 4
)
select
  k._company_id as company_id, k.day, k.inventorylocationid as location_id, k.inventorylocation as location, k.method,
  case k.method
    when 0 then 'on account or unset' when 1 then 'cash' when 2 then 'check' when 3 then 'credit card'
    when 4 then 'ACH/EFT' when 5 then 'POS card terminal' else 'other'
  end as method_name,
  k.accountid as account_id, k.account, k.currency, k.payments, k.paid, k.from_deposits, k.deposits, k.deposited,
  k.received, k.returned, k.banked, k.cleared, k.bank_fees, k.kind,
  coalesce(c.closes, 0) as closes,
  case k.kind when 'cash' then c.cash when 'checks and cards' then c.checks_and_cards end as closed,
  case k.kind when 'cash' then c.cash when 'checks and cards' then c.checks_and_cards end - k.paid_of_kind
    as close_difference
from kinds k
-- A missing day equals a missing day, as in daily_close_check; the database can join by these expressions in one pass.
left join closes c on c._company_id = k._company_id
  and coalesce(c.closedate, 'infinity') = coalesce(k.day, 'infinity')
  and coalesce(c.inventorylocationid, -1) = coalesce(k.inventorylocationid, -1)
  and c.currency is not distinct from k.currency
