/** Written by `generate.ts` from the catalogue: change it there. */
import type { CommonFilters, CustomFields, CustomFieldValues, DateText, Decimal, OneOf, Timestamp } from "../Values.ts"

/** One of invoicelines: invoice lines. Basis in the API's documents: documented. */
export interface InvoicelinesRecord {
  /** the record's number. Read-only */
  readonly id: number
  /** invoice by id or invoicenumber */
  readonly invoiceid: number | null
  /** invoice by id or invoicenumber */
  readonly invoice: string | null
  /** position on the document, from 1 */
  readonly linenumber: number | null
  /** item by id or sku */
  readonly itemid: number | null
  /** item by id or sku */
  readonly item: string | null
  /** printed line text */
  readonly description: string | null
  /** qty, 6 decimals */
  readonly qty: Decimal | null
  /** unit by id or unitname */
  readonly qtyunitnameid: number | null
  /** unit by id or unitname */
  readonly qtyunitname: string | null
  /** ledger account by id or name */
  readonly glaccountid: number | null
  /** ledger account by id or name */
  readonly glaccount: string | null
  /** whether the first line tax applies */
  readonly taxflag: number | null
  /** whether the second line tax applies */
  readonly taxflag2: number | null
  /** whether the third line tax applies */
  readonly taxflag3: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly taxflagid: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly taxflag2id: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly taxflag3id: number | null
  /** unit price. money, 6 decimals */
  readonly priceach: Decimal | null
  /** unit of the price, by id or unitname */
  readonly priceunitnameid: number | null
  /** unit of the price, by id or unitname */
  readonly priceunitname: string | null
  /** qty, 6 decimals */
  readonly qtyunitperpriceunit: Decimal | null
  /** money, 4 decimals */
  readonly totalprice: Decimal | null
  /** creation time; writable where the record itself is written */
  readonly entrydate: Timestamp | null
  /** time of the last change; drives modifiedsince. Read-only */
  readonly lastchangedate: Timestamp | null
  /** money, 6 decimals */
  readonly costeach: Decimal | null
  /** cost account by id or name */
  readonly costglaccountid: number | null
  /** cost account by id or name */
  readonly costglaccount: string | null
  /** the line that this one belongs to */
  readonly main_arinvoicedetailid: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly itemoptionid: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly itemoptiongroupid: number | null
  /** money, 5 decimals */
  readonly orig_priceach: Decimal | null
  /** money, 5 decimals */
  readonly discount_amount: Decimal | null
  /** not the same field as discountpercent. number, 5 decimals */
  readonly discount_percent: Decimal | null
  /** line id in the system imported from. Read-only */
  readonly old_id: string | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly pricelevelid: number | null
  /** 1 when the price was manually overridden (repricing leaves it) */
  readonly price_override: number | null
  /** money, 5 decimals */
  readonly extended_price: Decimal | null
  /** work type by id or name */
  readonly worktypeid: number | null
  /** work type by id or name */
  readonly worktype: string | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly worksubtypeid: number | null
  /** qty, 6 decimals */
  readonly returnqty: Decimal | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly returndetailid: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly discountid: number | null
  /** not the same field as discount_percent. number, 2 decimals */
  readonly discountpercent: Decimal | null
  /** inventory location by id or locationcode */
  readonly inventorylocationid: number | null
  /** inventory location by id or locationcode */
  readonly inventorylocation: string | null
  /** service and rental lines */
  readonly linedate: DateText | null
  /** 0: standard product; 1: product-type tax; 2: delivery charge; 3: fuel charge; 4: restock fee; 5: billed expense */
  readonly linetype: number | null
  /** tax exemption by id or exemptname */
  readonly partialtaxexemptionid: number | null
  /** tax exemption by id or exemptname */
  readonly partialtaxexemption: string | null
  /** tax class by id or class name */
  readonly taxclassid: number | null
  /** tax class by id or class name */
  readonly taxclass: string | null
  /** the order line that the line bills */
  readonly arorderdetailid: number | null
  /** id of a record that this catalogue does not hold; stored as given */
  readonly itempricespecialdetailid: number | null
  /** number, 6 decimals */
  readonly numperiods: Decimal | null
  /** rental billing period; empty for non-rental. D: daily; W: weekly; M: monthly; : non-rental */
  readonly period: OneOf<"D" | "W" | "M" | ""> | null
  readonly producttypetaxid: number | null
  readonly rentalbegindate: DateText | null
  readonly arserviceorder_timeid: number | null
  readonly assetid: number | null
  readonly prpaytypeid: number | null
  /** number, 2 decimals */
  readonly prpaytypemultiplier: Decimal | null
  /** the caller's own key, stored verbatim, scoped to the company */
  readonly externalid: string | null
  readonly custom_fields?: CustomFields | undefined
}

/** The body of a new record of invoicelines. */
export interface InvoicelinesCreate {
  /** must be a DRAFT invoice */
  readonly invoiceid: number
  /** omit for a non-stock line and send description */
  readonly itemid?: number | null | undefined
  /** defaults to the item description. at most 255 characters */
  readonly description?: string | null | undefined
  /** up to 6 decimals. qty, 6 decimals */
  readonly quantity: Decimal
  /** unit price. money, 6 decimals */
  readonly price: Decimal
  /** whether the line attracts tax */
  readonly taxable?: boolean | null | undefined
  /** the caller's own key, stored verbatim, scoped to the company. at most 100 characters */
  readonly externalid?: string | null | undefined
  readonly custom_fields?: CustomFieldValues | null | undefined
}

/** Filters of lists of invoicelines. */
export interface InvoicelinesFilters extends CommonFilters {
  /** Records changed since, cancelled ones included: the `syncedThrough` of an earlier list */
  readonly modifiedsince?: Timestamp | undefined
  readonly itemid?: number | undefined
  readonly inventorylocationid?: number | undefined
  readonly invoiceid?: number | undefined
  /** Part of the text, in any case */
  readonly description?: string | undefined
}

export interface InvoicelinesShape {
  readonly operations: "list" | "create" | "batch" | "read" | "download"
  readonly record: InvoicelinesRecord
  readonly create: InvoicelinesCreate
  readonly update: never
  readonly filters: InvoicelinesFilters
  readonly answers: "invoicetotal"
  readonly reads: "tax"
  readonly actions: never
  readonly events: "invoicelines.created" | "invoicelines.updated" | "invoicelines.cancelled"
}
