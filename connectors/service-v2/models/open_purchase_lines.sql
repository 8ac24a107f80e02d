-- Which purchase orders are open, and what remains to receive?
--
-- One row for each purchase order line that received less than ordered.
-- Counts: purchase orders that are not complete.
-- Leaves out: complete purchase orders, of which nothing more is expected; cancelled and deleted purchase orders, lines
-- and receipts; lines that received in full or more.
-- qtyreceived is the service's own sum of the receipts. Purchase orders have neither an expected date nor a location.
-- Amounts are in the company's own currency, since purchase orders carry none.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: SCOPE-12, RES-15, STATE-12, STATE-14, CODE-18, CODE-22, GEN-09.
--
-- Indexes: purchaseorderlines (purchaseorderid)
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   purchaseorder_id bigint: id of the purchase order
--   purchaseorderline_id bigint: id of the line
--   linenumber bigint: position on the purchase order, from 1
--   vendor_id bigint: id of the vendor
--   vendor text: vendorcode
--   orderdate date: date of the purchase order
--   age_days integer: days from orderdate to today
--   item_id bigint: id of the item
--   item text: sku
--   description text: text of the line
--   qty_ordered numeric: quantity ordered
--   qty_received numeric: quantity received
--   qty_to_receive numeric: ordered minus received
--   priceach numeric: unit price
--   amount_to_receive numeric: qty_to_receive at priceach, rounded to 4 decimals, half away from zero; empty without a price
--   receipts bigint: number of receipts against the purchase order
--   last_receipt date: date of the last of them
select
  o._company_id as company_id,
  o.id as purchaseorder_id,
  l.id as purchaseorderline_id,
  l.linenumber,
  o.vendorid as vendor_id,
  o.vendor,
  o.orderdate,
  {{as_of}} - o.orderdate as age_days,
  l.itemid as item_id,
  l.item,
  l.description,
  coalesce(l.qtyorder, 0) as qty_ordered,
  coalesce(l.qtyreceived, 0) as qty_received,
  coalesce(l.qtyorder, 0) - coalesce(l.qtyreceived, 0) as qty_to_receive,
  l.priceach,
  round((coalesce(l.qtyorder, 0) - coalesce(l.qtyreceived, 0)) * l.priceach, 4) as amount_to_receive,
  coalesce(r.receipts, 0) as receipts,
  r.last_receipt
from {{purchaseorders}} o
join {{purchaseorderlines}} l on l._company_id = o._company_id and l.purchaseorderid = o.id
left join (
  select _company_id, purchaseorderid, count(*) as receipts, max(receiptdate) as last_receipt
  from {{purchaseorderreceipts}}
  where _deleted_at is null and not coalesce(cancel, false)
  group by _company_id, purchaseorderid
) r on r._company_id = o._company_id and r.purchaseorderid = o.id
where o._deleted_at is null and not coalesce(o.cancel, false) and o.complete is not true
  and l._deleted_at is null and not coalesce(l.cancel, false) and coalesce(l.qtyorder, 0) > coalesce(l.qtyreceived, 0)
