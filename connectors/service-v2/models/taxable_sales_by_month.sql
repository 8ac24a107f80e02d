-- What did we invoice with and without which line tax, month by month?
--
-- One row for each month, place of the tax on the line, tax, tax class and exemption. A line with several taxes counts
-- once for each of them: add up one tax only.
-- Counts: lines of invoices with a ledger voucher, in the month of the invoice's accounting date; credits as negative.
-- Lines without any tax have the place 0.
-- Leaves out: lines of drafts and of cancelled or deleted invoices; product-type tax lines (linetype 1). It is the
-- amount that a tax applies to, not the tax: lists show neither the tax charged nor the jurisdiction, which only GET
-- /invoicelines/{id}/tax answers, line by line. The record that tax_id names is not documented, and the part that an
-- exemption takes off is not either: exempt lines are a row of their own. Amounts are in the company's own currency,
-- since invoices carry none.
-- Facts: STATE-10, STATE-12, SPECIAL-06, INVOICELINES-04, INVOICELINES-11 to INVOICELINES-16, INVOICELINES-20,
-- INVOICELINES-43 to INVOICELINES-45, INVOICELINES-57.
--
-- Indexes: invoicelines (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the invoice's date
--   place integer: 1, 2 or 3 for the first, second or third line tax; 0 for lines without one
--   tax_id bigint: id of the tax, as the line names it
--   taxclass_id bigint: id of the tax class
--   taxclass text: name of the tax class
--   exemption_id bigint: id of the exemption
--   exemption text: name of the exemption
--   invoices bigint: number of invoices
--   lines bigint: number of lines
--   amount numeric: sum of totalprice
select
  l._company_id as company_id,
  date_trunc('month', i.invoicedate::timestamp)::date as month,
  t.place,
  t.id as tax_id,
  l.taxclassid as taxclass_id,
  max(l.taxclass) as taxclass,
  l.partialtaxexemptionid as exemption_id,
  max(l.partialtaxexemption) as exemption,
  count(distinct i.id) as invoices,
  count(*) as lines,
  coalesce(sum(l.totalprice), 0) as amount
from {{invoicelines}} l
join {{invoices}} i on i._company_id = l._company_id and i.id = l.invoiceid
cross join lateral (
  values
    (1, l.taxflag, l.taxflagid),
    (2, l.taxflag2, l.taxflag2id),
    (3, l.taxflag3, l.taxflag3id),
    (0, case when l.taxflag <> 0 or l.taxflag2 <> 0 or l.taxflag3 <> 0 then 0 else 1 end, null)
) t (place, flag, id)
where l._deleted_at is null and coalesce(l.linetype, 0) <> 1 and t.flag <> 0
  and i._deleted_at is null and (i.invoicedate > {{until}}) is not true and not coalesce(i.cancel, false) and i.voucherid is not null
group by 1, 2, t.place, t.id, l.taxclassid, l.partialtaxexemptionid
