-- The ledger voucher that a posted document names exists.
--
-- Severity: critical
-- Counts: invoices, payments and order deposits that are not deleted and have a voucherid; cancelled ones too, since
-- nothing is removed from the ledger.
-- Names: the invoice, payment or deposit.
-- Facts: PAYMENTS-06, ORDERDEPOSITS-10, STATE-10, STATE-12.
with posted as (
  select _company_id, 'invoices' as resource, id, voucherid
  from {{invoices}} where _deleted_at is null and voucherid is not null
  union all
  select _company_id, 'payments', id, voucherid
  from {{payments}} where _deleted_at is null and voucherid is not null
  union all
  select _company_id, 'orderdeposits', id, voucherid
  from {{orderdeposits}} where _deleted_at is null and voucherid is not null
)
select
  p._company_id as company_id,
  p.resource,
  p.id,
  format('%s %s names the voucher %s, which does not exist', p.resource, p.id, p.voucherid) as detail
from posted p
left join {{vouchers}} v on v._company_id = p._company_id and v.id = p.voucherid and v._deleted_at is null
where v.id is null
