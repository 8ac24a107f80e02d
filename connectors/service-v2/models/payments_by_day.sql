-- What was paid on which day, and how?
--
-- One row for each day, method, currency and location.
-- Counts: payments on the accounting date that they post under; those that the bank returned, counted separately;
-- write-offs (method 99), which bring no money; portal convenience fees.
-- Leaves out: cancelled and deleted payments; deposits on orders, which are orderdeposits.
-- The point of sale writes method 2 (check) for credit cards too, so that 2 may include both.
-- Facts: PAYMENTS-05, PAYMENTS-07, PAYMENTS-08, PAYMENTS-10, PAYMENTS-21, PAYMENTS-33, STATE-12, STATE-16.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   day date: accounting date of the payments
--   method bigint: number of the method
--   method_name text: cash, check, credit card, ACH/EFT, POS card terminal, write-off, on account or unset, or other
--   currency text: currency of the payments
--   location_id bigint: id of the location
--   location text: locationcode
--   payments bigint: number of payments
--   amount numeric: sum of the payments, the returned ones included
--   returned_payments bigint: number of payments that the bank returned
--   returned_amount numeric: sum of the payments that the bank returned
--   net_amount numeric: amount minus returned_amount
select
  p._company_id as company_id,
  p.datereceived as day,
  p.paymeth as method,
  case coalesce(p.paymeth, 0)
    when 0 then 'on account or unset'
    when 1 then 'cash'
    when 2 then 'check'
    when 3 then 'credit card'
    when 4 then 'ACH/EFT'
    when 5 then 'POS card terminal'
    when 99 then 'write-off'
    else 'other'
  end as method_name,
  p.currency,
  p.inventorylocationid as location_id,
  max(p.inventorylocation) as location,
  count(*) as payments,
  coalesce(sum(p.amount), 0) as amount,
  count(*) filter (where p.returned = 1) as returned_payments,
  coalesce(sum(p.amount) filter (where p.returned = 1), 0) as returned_amount,
  coalesce(sum(p.amount) filter (where p.returned is distinct from 1), 0) as net_amount
from {{payments}} p
where p._deleted_at is null and (p.datereceived > {{until}}) is not true and not coalesce(p.cancel, false)
group by p._company_id, p.datereceived, p.paymeth, p.currency, p.inventorylocationid
