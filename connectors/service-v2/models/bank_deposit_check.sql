-- Do the bank deposits agree with the money that they contain?
--
-- One row for each bank deposit, and for each one that only a payment or a deposit on an order names.
-- Counts: payments and deposits on orders that name the bank deposit, those that the bank returned too (returned).
-- Leaves out: cancelled and deleted payments and deposits on orders; deleted bank deposits, which then are missing. The
-- documents do not say whether a bank deposit's amount is net of bank fees (bank_fees), nor in which currency it is:
-- amounts are added up whatever their currency (currencies). They do not show the fields of bank deposits and accounts:
-- theirs are inferred. Payments offer no modifiedsince: one that was put into a bank deposit is found by a full scan.
-- Facts: PAYMENTS-05, PAYMENTS-07, PAYMENTS-10, PAYMENTS-13, PAYMENTS-22, PAYMENTS-25, PAYMENTS-49, ORDERDEPOSITS-05,
-- ORDERDEPOSITS-11, ORDERDEPOSITS-13, ORDERDEPOSITS-21, ORDERDEPOSITS-22, SCOPE-17, RES-15.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   bank_deposit_id bigint: id of the bank deposit
--   account_id bigint: id of the bank account
--   account text: name of the bank account
--   depositdate date: date of the bank deposit
--   status text: missing, cancelled, empty, agrees or differs
--   amount numeric: amount of the bank deposit
--   payments bigint: number of payments in it
--   payments_total numeric: sum of them
--   deposits bigint: number of deposits on orders in it
--   deposits_total numeric: sum of them
--   difference numeric: amount minus both sums
--   returned numeric: the part of both that the bank returned
--   bank_fees numeric: bank fees of both
--   currencies bigint: number of currencies of both
--   first_received date: earliest accounting date of a payment in it
--   last_received date: latest accounting date of a payment in it
with contents as (
  select
    _company_id, bankdepositid, sum(payments) as payments, coalesce(sum(paid), 0) as paid,
    sum(deposits) as deposits, coalesce(sum(deposited), 0) as deposited,
    coalesce(sum(paid) filter (where returned = 1), 0) + coalesce(sum(deposited) filter (where returned = 1), 0)
      as returned,
    coalesce(sum(bankfee_amount), 0) as bank_fees, count(distinct currency) as currencies,
    min(datereceived) as first_received, max(datereceived) as last_received
  from (
    select
      _company_id, bankdepositid, 1 as payments, amount as paid, 0 as deposits, null::numeric as deposited, returned,
      bankfee_amount, currency, datereceived
    from {{payments}}
    where bankdepositid is not null and _deleted_at is null and not coalesce(cancel, false)
    union all
    select _company_id, bankdepositid, 0, null, 1, amount, returned, bankfee_amount, currency, null
    from {{orderdeposits}}
    where bankdepositid is not null and _deleted_at is null and not coalesce(cancel, false)
  ) named
  group by _company_id, bankdepositid
),
deposits as (select * from {{bankdeposits}} where _deleted_at is null)
select
  coalesce(b._company_id, c._company_id) as company_id,
  coalesce(b.id, c.bankdepositid) as bank_deposit_id,
  b.bankaccountid as account_id,
  a.name as account,
  b.depositdate,
  case
    when b.id is null then 'missing'
    when b.cancel then 'cancelled'
    when c.bankdepositid is null then 'empty'
    when coalesce(b.amount, 0) = c.paid + c.deposited then 'agrees'
    else 'differs'
  end as status,
  b.amount,
  coalesce(c.payments, 0) as payments,
  coalesce(c.paid, 0) as payments_total,
  coalesce(c.deposits, 0) as deposits,
  coalesce(c.deposited, 0) as deposits_total,
  coalesce(b.amount, 0) - coalesce(c.paid, 0) - coalesce(c.deposited, 0) as difference,
  coalesce(c.returned, 0) as returned,
  coalesce(c.bank_fees, 0) as bank_fees,
  coalesce(c.currencies, 0) as currencies,
  c.first_received,
  c.last_received
from deposits b
full join contents c on c._company_id = b._company_id and c.bankdepositid = b.id
left join {{bankaccounts}} a on a._company_id = b._company_id and a.id = b.bankaccountid and a._deleted_at is null
where (coalesce(b.depositdate, c.first_received) > {{until}}) is not true
