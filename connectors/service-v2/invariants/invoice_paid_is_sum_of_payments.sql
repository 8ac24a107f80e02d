-- The paid amount of an invoice is the sum of its payments.
--
-- Severity: critical
-- Counts: invoices that are not deleted, drafts and cancelled ones too, since these should have no payments.
-- Leaves out: cancelled and deleted payments. A returned payment counts until a person cancels it.
-- Names: the invoice.
-- Facts: PAYMENTS-04, PAYMENTS-05, PAYMENTS-10, PAYMENTS-48, STATE-10, STATE-16.
select
  i._company_id as company_id,
  'invoices' as resource,
  i.id,
  format(
    'invoice %s states %s as paid, but its %s payments add up to %s',
    coalesce(i.invoicenumber, i.id::text), coalesce(i.invoicepaid, 0), coalesce(p.payments, 0), coalesce(p.total, 0)
  ) as detail
from {{invoices}} i
left join (
  select _company_id, invoiceid, count(*) as payments, sum(amount) as total
  from {{payments}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, invoiceid
) p on p._company_id = i._company_id and p.invoiceid = i.id
where i._deleted_at is null and coalesce(i.invoicepaid, 0) <> coalesce(p.total, 0)
