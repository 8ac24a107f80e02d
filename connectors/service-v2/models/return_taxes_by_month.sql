-- Which taxes did returns credit, month by month?
--
-- One row for each month, place of the tax on the return, and tax.
-- Counts: returns in the month of their date, with and without a ledger voucher (posted).
-- Leaves out: cancelled and deleted returns; taxes of which a return has neither an id nor a credit. The record that
-- tax_id names is not documented: it may or may not be the one that an invoice line names. No credit names a
-- jurisdiction. Amounts are in the company's own currency, since returns carry none.
-- Facts: RMARETURNS-05 to RMARETURNS-11, RMARETURNS-16, RMARETURNS-18, STATE-12.
--
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the return; empty for returns without a date
--   place integer: 1, 2 or 3 for the first, second or third sales tax
--   tax_id bigint: id of the tax, as the return names it
--   returns bigint: number of returns
--   credited numeric: tax credited
--   posted numeric: the part of it on returns with a ledger voucher
select
  r._company_id as company_id,
  date_trunc('month', r.return_date::timestamp)::date as month,
  t.place,
  t.id as tax_id,
  count(*) as returns,
  coalesce(sum(t.credit), 0) as credited,
  coalesce(sum(t.credit) filter (where r.voucherid is not null), 0) as posted
from {{rmareturns}} r
cross join lateral (
  values (1, r.taxid, r.taxcredit), (2, r.taxid2, r.taxcredit2), (3, r.taxid3, r.taxcredit3)
) t (place, id, credit)
where r._deleted_at is null and (r.return_date > {{until}}) is not true and not coalesce(r.cancel, false) and (t.id is not null or coalesce(t.credit, 0) <> 0)
group by 1, 2, t.place, t.id
