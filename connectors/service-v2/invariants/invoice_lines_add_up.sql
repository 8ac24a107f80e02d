-- The lines of an invoice add up to its total.
--
-- Severity: critical
-- Counts: invoices that are not deleted, drafts and cancelled ones too; lines that are not deleted. Lines have no cancel
-- flag. An invoice without lines has the total 0.
-- Names: the invoice.
-- Facts: INVOICELINES-57, STATE-10, WRITE-09.
select
  i._company_id as company_id,
  'invoices' as resource,
  i.id,
  format(
    'invoice %s has the total %s, but its %s lines add up to %s',
    coalesce(i.invoicenumber, i.id::text), coalesce(i.invoicetotal, 0), coalesce(l.lines, 0), coalesce(l.total, 0)
  ) as detail
from {{invoices}} i
left join (
  select _company_id, invoiceid, count(*) as lines, sum(totalprice) as total
  from {{invoicelines}}
  where _deleted_at is null
  group by _company_id, invoiceid
) l on l._company_id = i._company_id and l.invoiceid = i.id
where i._deleted_at is null and coalesce(i.invoicetotal, 0) <> coalesce(l.total, 0)
