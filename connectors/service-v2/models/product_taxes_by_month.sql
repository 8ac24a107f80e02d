-- Which product-type taxes did we invoice, month by month?
--
-- One row for each month and product-type tax.
-- Counts: lines of the type product-type tax (linetype 1) of invoices with a ledger voucher, in the month of the
-- invoice's accounting date; credits as negative.
-- Leaves out: lines of drafts and of cancelled or deleted invoices; line taxes, which are no lines:
-- taxable_sales_by_month has what they apply to. Lines have no cancel flag of their own. Lines that name no tax, or one
-- that is deleted, have neither name nor rate. Name, rate and states are those of today. Amounts are in the company's
-- own currency, since invoices carry none.
-- Facts: STATE-10, STATE-12, INVOICELINES-04, INVOICELINES-20, INVOICELINES-43, INVOICELINES-50, INVOICELINES-57,
-- PRODUCTTYPETAXES-04 to PRODUCTTYPETAXES-06, PRODUCTTYPETAXES-10.
--
-- Indexes: invoicelines (invoiceid)
-- Columns:
--   company_id bigint: the company of the token that read it
--   month date: first day of the month of the invoice's date
--   tax_id bigint: id of the product-type tax
--   tax text: its name
--   states text: the states of the tax, as its record writes them
--   rate numeric: its rate as it is now
--   account text: ledger account of the tax
--   invoices bigint: number of invoices
--   lines bigint: number of lines
--   amount numeric: tax invoiced
select
  l._company_id as company_id,
  date_trunc('month', i.invoicedate::timestamp)::date as month,
  l.producttypetaxid as tax_id,
  max(t.name) as tax,
  max(t.states) as states,
  max(t.taxrate) as rate,
  max(t.glaccount) as account,
  count(distinct i.id) as invoices,
  count(*) as lines,
  coalesce(sum(l.totalprice), 0) as amount
from {{invoicelines}} l
join {{invoices}} i on i._company_id = l._company_id and i.id = l.invoiceid
left join {{producttypetaxes}} t
  on t._company_id = l._company_id and t.id = l.producttypetaxid and t._deleted_at is null
where l._deleted_at is null and l.linetype = 1
  and i._deleted_at is null and (i.invoicedate > {{until}}) is not true and not coalesce(i.cancel, false) and i.voucherid is not null
group by 1, 2, 3
