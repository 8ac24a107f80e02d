/**
 * The catalogue of Service API v2, compared with a second transcription of the documents: every field of the 25
 * documented resources, their operations and filters, and the basis of all other resources.
 *
 * The tables below follow the documents in order and notation. They do not use the catalogue's files.
 */
import { assert, describe, it } from "vitest"
import { areas, features } from "../../connectors/service-v2/catalogue/areas.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { resources } from "../../connectors/service-v2/catalogue/resources/index.ts"
import type { Field } from "../../src/catalogue/Field.ts"
import type { Filter, Resource, WriteField } from "../../src/catalogue/Resource.ts"

const resourceOf = (path: string): Resource => {
  const resource = serviceV2.resources.get(path)
  if (resource === undefined) throw new Error(`${path} is not in the catalogue`)
  return resource
}

/**
 * "Operations per resource": area; operations; filters besides cancel, externalid and include. `~` marks (partial). A
 * mark after the last of several names covers that name alone (A-17).
 */
const operationsPerResource: Readonly<Record<string, string>> = {
  shipments: "shipments; L C B R U D; locationid, orderid, invoiceid, modifiedsince",
  invoicelines: "invoices; L C B; itemid, inventorylocationid, invoiceid, description~, modifiedsince",
  payments: "payments; L C B R U D; customerid, inventorylocationid, invoiceid",
  orderdeposits: "payments; L C B; orderid, rnum~, modifiedsince",
  ardailycloses: "payments; L C B; inventorylocationid",
  rmareturns: "orders; L C B R U D; invoiceid",
  apbilllines: "bills; L C B R; jobid, description~",
  teamprojectreminders: "projects; L C B R; status, genuserid, teamprojecttaskid, modifiedsince",
  teamprojecttasktags: "projects; L C B R; teamprojecttaskid, modifiedsince",
  teamprojectrecurringtasks: "projects; L C B R U; title, description~, teamprojectid, modifiedsince",
  teamprojecttemplateitems: "projects; L C B R U D; title, description~, modifiedsince",
  teamprojectautomations: "projects; L C B; name~, teamprojectid, modifiedsince",
  emailtemplates: "setup; L C B R U; name~, action~",
  producttypetaxes: "tax; L C B R U D; name~",
  stages: "setup; L C B R U D; name, code, description~",
  estquotepricelists: "estimating; L C B; name~, modifiedsince",
  vendororderfroms: "vendors; L C B; vendorid",
  assetcategories: "assets; L C B; name~",
  carrierservices: "setup; L C B; code, description~",
  ccaccounts: "banking; L C B R; name~, modifiedsince",
  itemcomparisongroups: "items; L C B R U; name~",
  taskstatuses: "setup; L C B R U; name~",
  invoiceterms: "setup; L C B R U D; verbal~, modifiedsince",
  salesmen: "setup; L C B R U D; name~, modifiedsince",
  areas: "setup; L C B R U D; name~"
}

/** Operations that a decision adds to the documented ones. */
const added: Readonly<Record<string, string>> = { teamprojectreminders: "U" }

/**
 * "Resources and their fields": one line is names that share a type, and the type. `a / b` is a reference pair of an
 * integer and a string of the length stated. `ro` is read-only. The number of a string is its length; `text` has no
 * length; money, qty and number state their decimals. `day` and `time` are the two date forms (F-01). `integer?` has no
 * stated type (F-15).
 */
const fields: Readonly<Record<string, string>> = {
  shipments: `
    id: integer ro
    orderid: integer
    carrierserviceid / carrierservice: 100
    shipdate: day
    locationid / location: 20
    entrydate: time
    lastchangedate: time ro
    shiptoid: integer
    voucherid / voucher: 50
    cancel: boolean
    invoiceid / invoice: 30
    externalid: 100`,
  invoicelines: `
    id: integer ro
    invoiceid / invoice: 30
    linenumber: integer
    itemid / item: 255
    description: 255
    qty: qty 6
    qtyunitnameid / qtyunitname: 50
    glaccountid / glaccount: 20
    taxflag, taxflag2, taxflag3: integer
    taxflagid, taxflag2id, taxflag3id: integer
    priceach: money 6
    priceunitnameid / priceunitname: 50
    qtyunitperpriceunit: qty 6
    totalprice: money 4
    entrydate: time
    lastchangedate: time ro
    costeach: money 6
    costglaccountid / costglaccount: 20
    main_arinvoicedetailid, itemoptionid, itemoptiongroupid: integer
    orig_priceach, discount_amount: money 5
    discount_percent: number 5
    old_id: 255 ro
    pricelevelid: integer
    price_override: integer
    extended_price: money 5
    worktypeid / worktype: 100
    worksubtypeid: integer
    returnqty: qty 6
    returndetailid, discountid: integer
    discountpercent: number 2
    inventorylocationid / inventorylocation: 20
    linedate: day
    linetype: integer
    partialtaxexemptionid / partialtaxexemption: 32
    taxclassid / taxclass: 100
    arorderdetailid, itempricespecialdetailid: integer
    numperiods: number 6
    period: 1
    producttypetaxid: integer
    rentalbegindate: day
    arserviceorder_timeid, assetid, prpaytypeid: integer
    prpaytypemultiplier: number 2
    externalid: 100`,
  payments: `
    id: integer ro
    invoiceid / invoice: 30
    amount: money 4
    voucherid / voucher: 50
    datereceived: day
    paymeth: integer
    interest: integer
    cancel: boolean
    cancel_userid ro / cancel_user: 50
    checkid: 100
    bankdepositid: integer
    bankstatement_enddate, bankstatement_cleardate: day ro
    old_id: 255 ro
    refund_paymeth: integer
    cctransactionid, ccterminalid, extuserid: integer
    currency: 10
    returned: integer
    feeinvoiceid / feeinvoice: 30
    feeapbillid: integer
    bankfee_amount: money 4
    bankfee_glid / bankfee_gl: 20
    rnum: 30
    tendered: money 4
    transid: 32
    orderdepositid, creditorderdepositid: integer
    costcodeid / costcode: 20
    inventorylocationid / inventorylocation: 20
    isb2bpayment, isb2bpaymentfee, jointcheck, ispaymentonaccount: boolean
    writeoffreasonid: integer
    creditfromarinvoicepaymentdetailid, credittoarinvoicepaymentdetailid: integer
    entrydate: time
    customerid / customer: 30
    datereceivedandvoucherid: integer ro
    pendingarachbankrecdatereceived: string ro
    checkaccountid / checkaccount: 30
    externalid: 100`,
  orderdeposits: `
    id: integer ro
    orderid: integer
    amount: money 4
    payment_method: integer
    transaction_id: 32
    entrydate: time
    last4ofcard: 4 ro
    voucherid: integer ro
    cancel: boolean
    lastchangedate: time ro
    bankdepositid, cctransactionid, ccterminalid: integer ro
    checkid: 100
    bankstatement_enddate, bankstatement_cleardate: day ro
    checkacctid / checkacct: 30
    currency: 10
    returned: integer
    bankfee_amount: money 4
    bankfee_glid / bankfee_gl: 20
    rnum: 30
    tendered: money 4
    notes: text
    externalid: 100`,
  apbilllines: `
    id: integer ro
    apbillid: integer
    amount: money 4
    glaccountid / glaccount: 20
    invreceiveid, jobid: integer
    glcategoryid / glcategory: 20
    costcodeid / costcode: 20
    description: 100
    isretainer: integer
    curratenumber: number 10
    externalid: 100`,
  rmareturns: `
    id: integer ro
    rma_arorderid: integer
    return_date: day?
    taxid, taxid2, taxid3: integer
    taxcredit, taxcredit2, taxcredit3, shipping_credit, restock_fee, total_credit: money 5
    invoiceid / invoice: 30
    voucherid / voucher: 50
    new_orderid: integer?
    cancel: boolean
    entrydate: time?
    externalid: 100`,
  ardailycloses: `
    id: integer ro
    inventorylocationid / inventorylocation: 20
    closedate: day?
    actualcash, actualchecks, cashdrawerfloat, depositeamount, actualcc, overshort, gl_cash, gl_cc, gl_checks: money 4
    sys_cash, sys_cc, sys_checks: money 4
    currencybreakdown: text
    currency: 10
    entrydate: time?
    cancel: boolean
    externalid: 100`,
  teamprojectreminders: `
    id: integer ro
    genuserid / genuser: 50
    teamprojecttaskid: integer
    reminderdate: day?
    note: 255
    status: boolean
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    externalid: 100`,
  teamprojecttasktags: `
    id: integer ro
    teamprojecttaskid: integer
    teamprojecttagid / teamprojecttag: 100
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    externalid: 100`,
  teamprojectrecurringtasks: `
    id: integer ro
    teamprojectid / teamproject: 30
    teamprojectmilestoneid: integer
    title: 255
    description: text
    teamprojectstatusid / teamprojectstatus: 100
    priority: integer?
    estimatedhours: money 6
    assignuserid / assignuser: 50
    frequency, intervaldays, dayofweek, dayofmonth: integer?
    nextrundate, enddate: day?
    lastrundate: day? ro
    enabled: boolean
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    externalid: 100`,
  teamprojecttemplateitems: `
    id: integer ro
    teamprojecttemplateid / teamprojecttemplate: 100
    parentitemid / parentitem: 255
    itemtype: integer?
    title: 255
    description: text
    priority: integer?
    estimatedhours: money 6
    offsetdays, durationdays: integer?
    assignrole: boolean
    sortorder: integer?
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    externalid: 100`,
  teamprojectautomations: `
    id: integer ro
    teamprojectid / teamproject: 30
    name: 200
    triggertype: integer?
    triggervalue: text
    actiontype: integer?
    actionvalue: text
    enabled: boolean?
    sortorder: integer?
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    externalid: 100`,
  emailtemplates: `
    id: integer ro
    action: 20
    name: 200
    subject: 255
    body: text
    cancel: boolean
    externalid: 100`,
  producttypetaxes: `
    id: integer ro
    name: 255
    taxrate: number 6
    glaccountid / glaccount: 20
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    states: text
    externalid: 100`,
  stages: `
    id: integer ro
    stagetypeid: integer
    name: 100
    code: 15
    description: text
    autotrigger: 100
    entrydate: time? ro
    cancel: boolean
    sortorder: integer?
    externalid: 100`,
  estquotepricelists: `
    id: integer ro
    stdsizeid: integer
    worktypeid / worktype: 100
    name: 50
    cancel: boolean
    entrydate: time? ro
    lastchangedate: time ro
    maxinkside1, maxinkside2: integer
    trimchargepermpercut, trimmincharge: money 2
    qtyperbox: qty 0
    notes: text
    point2id: integer
    covereach_blackinandout, covereach_coloroutblackin, covereach_colorinandout: money 5
    costper_nocover, covereach_colorinblackout: money 5
    noinkcharge: integer
    scrap_percent: number 2
    scrap_sheets_max: integer
    externalid: 100`,
  vendororderfroms: `
    id: integer ro
    vendorid / vendor: 30
    companyname: 100
    contactname: 100
    address: 100
    address2: 100
    city: 50
    state: 20
    zip: 15
    country: 20
    phone: 20
    fax: 20
    email: 50
    mailstop: 20
    entrydate: time? ro
    cancel: boolean
    lastchangedate: time ro
    addressverified: 32 ro
    externalid: 100`,
  assetcategories: `
    id: integer ro
    name: 255
    entrydate: time? ro
    lastchangedate: time ro
    cancel: boolean
    accumulateddepreciationglaccountid / accumulateddepreciationglaccount: 20
    assetglaccountid / assetglaccount: 20
    expenseglaccountid / expenseglaccount: 20
    expensedepreciationglaccountid / expensedepreciationglaccount: 20
    externalid: 100`,
  carrierservices: `
    id: integer ro
    carrierid / carrier: 100
    description: 50
    abbreviation: 50
    sortorder, not_on_b2b, onquote: integer?
    box1_charge, box_addl: money 5
    require_shippernum, showvalue: integer?
    code: 10
    methodmarkupflat: money 4
    saturdaydelivery: 1
    allowonpointofsaleorders: boolean
    externalid: 100`,
  ccaccounts: `
    id: integer ro
    name: 100
    ccprocessorid / ccprocessor: 100
    checkacctid / checkacct: 30
    cancel: boolean
    externalid: 100
    lastchangedate: time ro`,
  itemcomparisongroups: `
    id: integer ro
    name: 255
    hidden: boolean
    cancel: boolean
    externalid: 100
    lastchangedate: time ro`,
  taskstatuses: `
    id: integer ro
    name: 100
    cancel: boolean
    externalid: 100`,
  invoiceterms: `
    id: integer ro
    verbal: 30
    netduedays: integer
    discountpercent: number 3
    discountdays: integer
    ar, ap: boolean
    cancel: boolean
    externalid: 100
    lastchangedate: time ro`,
  salesmen: `
    id: integer ro
    name: 50
    salesman, servicerep: boolean
    commissionrate: money 3
    email1: 50
    phone1: 20
    cancel: boolean
    externalid: 100
    lastchangedate: time ro`,
  areas: `
    id: integer ro
    name: 100
    applicationfee: money 6 shown 4
    cancel: boolean
    externalid: 100`
}

/** The number of fields of each resource, counted separately (facts.md). */
const counts: Readonly<Record<string, number>> = {
  shipments: 16,
  invoicelines: 64,
  payments: 53,
  orderdeposits: 27,
  ardailycloses: 21,
  rmareturns: 20,
  apbilllines: 15,
  teamprojectreminders: 11,
  teamprojecttasktags: 8,
  teamprojectrecurringtasks: 24,
  teamprojecttemplateitems: 18,
  teamprojectautomations: 14,
  emailtemplates: 7,
  producttypetaxes: 10,
  stages: 10,
  estquotepricelists: 24,
  vendororderfroms: 20,
  assetcategories: 14,
  carrierservices: 17,
  ccaccounts: 9,
  itemcomparisongroups: 6,
  taskstatuses: 4,
  invoiceterms: 10,
  salesmen: 10,
  areas: 5
}

/** The closed sets that the documents list. A decision may add one to a further field; no other field has one. */
const paymentMethods =
  "0 on account or unset, 1 cash, 2 check (the POS writes 2 for credit card), 3 credit card, 4 ACH/EFT, " +
  "5 POS card terminal, 99 write-off"
const closedSets: Readonly<Record<string, string>> = {
  "invoicelines.linetype":
    "0 standard product, 1 product-type tax, 2 delivery charge, 3 fuel charge, 4 restock fee, 5 billed expense",
  "invoicelines.period": " non-rental, D daily, M monthly, W weekly",
  "payments.paymeth": paymentMethods,
  "payments.refund_paymeth": paymentMethods,
  // I-21
  "orderdeposits.payment_method": paymentMethods,
  "teamprojectrecurringtasks.priority": "0 low, 1 normal, 2 high, 3 critical",
  "teamprojectrecurringtasks.frequency": "0 daily, 1 weekly, 2 monthly, 3 custom every intervaldays days",
  "teamprojecttemplateitems.itemtype": "0 milestone, 1 task",
  "teamprojecttemplateitems.priority": "0 low, 1 normal, 2 high, 3 critical",
  "teamprojectautomations.triggertype":
    "0 status changed, 1 task assigned, 2 due date reached, 3 due date approaching, 4 task created, " +
    "5 milestone completed, 6 priority changed",
  "teamprojectautomations.actiontype":
    "0 change status, 1 reassign task, 2 set priority, 3 add tag, 4 send notification, 5 add comment"
}

/** The column that the code half of each reference names (the fields' notes; F-09 where they state nothing). */
const codes: Readonly<Record<string, string>> = {
  "*.carrierservice": "carrierservices.code",
  "*.location": "inventorylocations.locationcode",
  "*.inventorylocation": "inventorylocations.locationcode",
  "*.voucher": "vouchers.voucher",
  "*.invoice": "invoices.invoicenumber",
  "*.feeinvoice": "invoices.invoicenumber",
  "*.item": "items.sku",
  "*.qtyunitname": "qtyunits.unitname",
  "*.priceunitname": "qtyunits.unitname",
  "*.glaccount": "glaccounts.name",
  "*.costglaccount": "glaccounts.name",
  "*.bankfee_gl": "glaccounts.name",
  "*.accumulateddepreciationglaccount": "glaccounts.name",
  "*.assetglaccount": "glaccounts.name",
  "*.expenseglaccount": "glaccounts.name",
  "*.expensedepreciationglaccount": "glaccounts.name",
  "*.glcategory": "glcategories.code",
  "*.costcode": "costcodes.code",
  "*.worktype": "worktypes.name",
  "*.partialtaxexemption": "taxexemptions.exemptname",
  "*.taxclass": "taxclasses.name",
  "*.cancel_user": "users.login",
  "*.genuser": "users.login",
  "*.assignuser": "users.login",
  "*.customer": "customers.customercode",
  "*.checkaccount": "checkaccounts.name",
  "*.checkacct": "checkaccounts.name",
  "*.teamproject": "teamprojects.code",
  "*.teamprojectstatus": "teamprojectstatuses.name",
  "*.teamprojecttag": "teamprojecttags.name",
  "*.teamprojecttemplate": "teamprojecttemplates.name",
  "*.parentitem": "teamprojecttemplateitems.title",
  "*.vendor": "vendors.vendorcode",
  "*.carrier": "carriers.name",
  "*.ccprocessor": "ccprocessors.name"
}

/** A field in a notation to which both the documents and the catalogue can be converted. */
interface Stated {
  readonly type: string
  readonly readOnly: boolean
  readonly pairedWith: string | null
}

const stated = (table: string): ReadonlyMap<string, Stated> => {
  const all = new Map<string, Stated>()
  for (const line of table.split("\n").filter((line) => line.trim() !== "")) {
    const [names = "", said = ""] = line.split(": ").map((part) => part.trim())
    const type = said
      .replace(/ ro$/, "")
      .replace(/^\d+$/, "string $&")
      .replace(/^text$/, "string null")
    const readOnly = said.endsWith(" ro")
    if (names.includes(" / ")) {
      const [id = "", code = ""] = names.split(" / ")
      const idName = id.replace(/ ro$/, "")
      all.set(idName, { type: "integer", readOnly: id.endsWith(" ro"), pairedWith: code })
      all.set(code, { type, readOnly, pairedWith: idName })
    } else {
      for (const name of names.split(", ")) all.set(name, { type, readOnly, pairedWith: null })
    }
  }
  return all
}

const statedOf = ({ type, typed, readOnly, reference }: Field): Stated => {
  const words = (() => {
    switch (type._tag) {
      case "decimal":
        return `${type.kind} ${type.scale}${type.shown === type.scale ? "" : ` shown ${type.shown}`}`
      case "string":
        return `string ${type.maxLength}`
      case "date":
        return "day"
      case "timestamp":
        return "time"
      default:
        return type._tag
    }
  })()
  return { type: words + (typed ? "" : "?"), readOnly, pairedWith: reference?.pairedWith ?? null }
}

/**
 * Deliberate differences where the catalogue states more than the documents: a length that the documents do not give,
 * and a date whose type only the conventions state. Each is harmless for the stated reason.
 */
const tolerated = (path: string, name: string, one: Stated): Stated => {
  if (path === "payments" && name === "pendingarachbankrecdatereceived") return { ...one, type: "string" }
  if (path === "producttypetaxes" && name === "entrydate") return { ...one, type: "time?" }
  return one
}

const filterText = ({ field, match }: Filter) => field + (match === "partial" ? "~" : "")
const sorted = (items: Iterable<string>) => [...items].sort()
const documented = Object.keys(operationsPerResource)

describe("the catalogue of Service API v2", () => {
  it("is valid: every name resolves", () => {
    assert.isAbove(serviceV2.resources.size, 80)
    assert.strictEqual(new Set(resources.map(({ path }) => path)).size, resources.length)
  })

  it("has 25 documented resources, and no others", () => {
    assert.strictEqual(documented.length, 25)
    assert.deepStrictEqual(
      sorted([...serviceV2.resources.values()].filter(({ basis }) => basis === "documented").map(({ path }) => path)),
      sorted(documented)
    )
  })

  it("has a resource in every area", () => {
    assert.deepStrictEqual(
      sorted(new Set([...serviceV2.resources.values()].map(({ area }) => area))),
      sorted(areas.map(({ name }) => name))
    )
  })

  it("requires a module exactly in the areas that are modules", () => {
    for (const { path, area, feature } of serviceV2.resources.values()) {
      assert.strictEqual(feature, features.includes(area) ? area : null, path)
    }
  })

  it("marks customers, items, vendors and employees as capped", () => {
    assert.deepStrictEqual(
      sorted([...serviceV2.resources.values()].filter(({ capped }) => capped).map(({ path }) => path)),
      ["customers", "employees", "items", "vendors"]
    )
  })
})

describe.each(documented)("the resource %s", (path) => {
  const [area = "", operations = "", filters = ""] = operationsPerResource[path]!.split("; ")
  const resource = resourceOf(path)
  const expected = stated(fields[path]!)

  it("has the documented area, operations and filters", () => {
    assert.strictEqual(resource.area, area)
    const extra = added[path]
    assert.deepStrictEqual(resource.operations.join(" "), extra === undefined ? operations : `${operations} ${extra}`)
    const names = filters.split(", ")
    assert.deepStrictEqual(
      resource.filters.map(filterText),
      names.filter((name) => name !== "modifiedsince")
    )
    assert.strictEqual(resource.modifiedSince, names.includes("modifiedsince"))
  })

  it("has the documented fields, in their order", () => {
    assert.deepStrictEqual([...resource.field.keys()], [...expected.keys()])
    assert.strictEqual(resource.fields.length, counts[path])
  })

  it("has the documented types, lengths, decimals, read-only marks and pairs", () => {
    for (const [name, one] of expected) {
      assert.deepStrictEqual(tolerated(path, name, statedOf(resource.field.get(name)!)), one, name)
    }
  })

  it("has the listed closed sets, and no others", () => {
    for (const field of resource.fields) {
      const listed = closedSets[`${path}.${field.name}`]
      const texts = field.values?.map(({ value, meaning }) => `${value} ${meaning}`)
      assert.strictEqual(texts === undefined ? undefined : texts.sort(byNumber).join(", "), listed, field.name)
    }
  })

  it("resolves its codes as the notes state", () => {
    for (const { name, reference } of resource.fields) {
      if (reference?.half !== "code") continue
      assert.strictEqual(`${reference.resource}.${reference.by}`, codes[`*.${name}`], name)
    }
  })
})

const byNumber = (a: string, b: string) => Number.parseInt(a) - Number.parseInt(b) || (a < b ? -1 : 1)

describe("a rule of single resources", () => {
  const keys: Readonly<Record<string, string>> = {
    emailtemplates: "action",
    taskstatuses: "name",
    invoiceterms: "verbal",
    salesmen: "name",
    areas: "name"
  }

  it("gives five documented resources a unique, required, case-insensitive key (F-05, F-13)", () => {
    for (const path of documented) {
      const { key, required } = resourceOf(path)
      const field = keys[path]
      if (field === undefined) {
        assert.isNotTrue(key?.unique, path)
        assert.deepStrictEqual(required, [], path)
      } else {
        assert.deepStrictEqual(key, { field, caseSensitive: false, unique: true }, path)
        assert.deepStrictEqual(required, [field], path)
      }
    }
  })

  it("limits the meaning cancelled of cancel=true to task statuses (A-08)", () => {
    const only = [...serviceV2.resources.values()].filter(({ cancelFilter }) => cancelFilter === "only")
    assert.deepStrictEqual(
      only.map(({ path }) => path),
      ["taskstatuses"]
    )
  })

  it("shares payment terms install-wide, and nothing else (C-11)", () => {
    const shared = [...serviceV2.resources.values()].filter(({ shared }) => shared)
    assert.deepStrictEqual(
      shared.map(({ path }) => path),
      ["invoiceterms"]
    )
  })

  it("gives twelve documented resources modifiedsince, and four lastchangedate without it (EP-20, EP-21)", () => {
    const offering = documented.filter((path) => resourceOf(path).modifiedSince)
    assert.strictEqual(offering.length, 12)
    assert.deepStrictEqual(
      sorted(
        documented.filter((path) => resourceOf(path).field.has("lastchangedate") && !resourceOf(path).modifiedSince)
      ),
      ["assetcategories", "itemcomparisongroups", "producttypetaxes", "vendororderfroms"]
    )
  })

  it("leaves three documented resources without cancel, thirteen with cancel but without D (EP-22, X-06)", () => {
    assert.deepStrictEqual(sorted(documented.filter((path) => !resourceOf(path).field.has("cancel"))), [
      "apbilllines",
      "carrierservices",
      "invoicelines"
    ])
    const withoutD = documented.filter(
      (path) => resourceOf(path).field.has("cancel") && !resourceOf(path).operations.includes("D")
    )
    assert.strictEqual(withoutD.length, 13)
  })
})

describe("write shapes", () => {
  const shapeText = ({ name, type, required, sets, refers, lines }: WriteField): string => {
    const words =
      type._tag === "decimal"
        ? `${type.kind} ${type.scale}`
        : type._tag === "string"
          ? `string ${type.maxLength}`
          : type._tag
    return [
      `${name}: ${words}`,
      required ? "required" : "",
      sets === name || sets === null ? "" : `-> ${sets}`,
      refers === null ? "" : `= ${refers.resource}.${refers.by ?? "id"}`,
      lines === null ? "" : `[${lines.map(shapeText).join("; ")}]`
    ]
      .filter((part) => part !== "")
      .join(" ")
  }
  const externalid = "externalid: string 100"

  it.each([
    [
      "shipments",
      "create",
      [
        "orderid: integer required = orders.id",
        externalid,
        "lines: list required [orderlineid: integer required = orderlines.id; quantity: qty 6 required]"
      ]
    ],
    ["shipments", "update", ["carrierserviceid: integer = carrierservices.id", "shipdate: date", externalid]],
    [
      "invoicelines",
      "create",
      [
        "invoiceid: integer required = invoices.id",
        "itemid: integer = items.id",
        "description: string 255",
        "quantity: qty 6 required -> qty",
        "price: money 6 required -> priceach",
        "taxable: boolean -> taxflag",
        externalid
      ]
    ],
    [
      "payments",
      "create",
      [
        "invoiceid: integer required = invoices.id",
        "amount: money 4 required",
        "date: date -> datereceived",
        "method: integer -> paymeth",
        "reference: string 100 -> checkid",
        externalid
      ]
    ],
    ["payments", "update", ["reference: string 100 -> checkid", "method: integer -> paymeth", externalid]],
    [
      "orderdeposits",
      "create",
      [
        "orderid: integer required = orders.id",
        "amount: money 4 required",
        "date: date",
        "method: integer -> payment_method",
        "reference: string 100 -> checkid",
        externalid
      ]
    ],
    [
      "apbilllines",
      "create",
      [
        "apbillid: integer required = apbills.id",
        "glaccountid: integer required = glaccounts.id",
        "glaccount: string 60 = glaccounts.name",
        "amount: money 4 required",
        "jobid: integer = jobs.id",
        "costcodeid: integer = costcodes.id",
        externalid
      ]
    ]
  ] as const)("are as documented: %s, %s", (path, mode, expected) => {
    assert.deepStrictEqual(resourceOf(path)[mode]!.map(shapeText), [...expected])
  })

  it("return sums that are not fields of the record for three resources (WRITE-09, WRITE-12, WRITE-19)", () => {
    const summing = [...serviceV2.resources.values()].filter(({ answers }) => answers.length > 0)
    assert.deepStrictEqual(Object.fromEntries(summing.map(({ path, answers }) => [path, answers])), {
      invoicelines: ["invoicetotal"],
      payments: ["invoicepaid"],
      apbilllines: ["billtotal", "distributed", "undistributed"]
    })
  })

  it("equal the read shapes of the other documented resources", () => {
    const simplified = documented.filter((path) => resourceOf(path).create !== null || resourceOf(path).update !== null)
    assert.deepStrictEqual(sorted(simplified), [
      "apbilllines",
      "invoicelines",
      "orderdeposits",
      "payments",
      "shipments"
    ])
  })
})

describe("the resources that are only named or inferred", () => {
  /** Decisions L2 to L4: area; operations. */
  const rows: Readonly<Record<string, string>> = {
    shipmentlines: "shipments; L R",
    orders: "orders; L C R U D",
    orderlines: "orders; L C R U D",
    invoices: "invoices; L C R U D",
    customers: "customers; L C B R U D",
    shiptos: "customers; L C R U D",
    items: "items; L C B R U D",
    carriers: "setup; L R",
    taxclasses: "tax; L C R U D",
    taxexemptions: "tax; L C R U D",
    glaccounts: "glaccounts; L R",
    costcodes: "glaccounts; L R",
    vouchers: "glaccounts; L R",
    checkaccounts: "banking; L R",
    inventorylocations: "setup; L R",
    ledgerperiods: "setup; L R",
    qtyunits: "setup; L R",
    worktypes: "setup; L R",
    prpaytypes: "payroll; L R",
    users: "users; L R",
    customfields: "setup; L R",
    contactnames: "customers; L C R U D",
    b2busers: "customers; L C R U D",
    vendors: "vendors; L C R U D",
    apbills: "bills; L C R",
    serviceordertimes: "orders; L C R U D",
    taxjurisdictions: "tax; L R",
    ccprocessors: "banking; L R",
    purchaseorders: "purchaseorders; L C R U D",
    purchaseorderlines: "purchaseorders; L C R U D",
    purchaseorderreceipts: "purchaseorders; L C R",
    gltransactions: "gltransactions; L C R",
    inventorytransfers: "items; L C R",
    inventorycounts: "items; L C R",
    employees: "payroll; L R",
    departments: "payroll; L R",
    bankaccounts: "banking; L R",
    bankdeposits: "banking; L R",
    cctransactions: "banking; L R",
    fixedassets: "assets; L C R U D",
    jobs: "jobs; L C R U D",
    jobdraws: "jobs; L C R U D",
    jobsites: "jobs; L C R U D",
    buildings: "properties; L C R U D",
    propertyunits: "properties; L C R U D",
    leases: "properties; L C R U D",
    teamprojects: "projects; L C R U D",
    teamprojecttasks: "projects; L C R U D",
    teamprojectstatuses: "projects; L C R U D",
    teamprojecttags: "projects; L C R U D",
    teamprojectmilestones: "projects; L C R U D",
    teamprojecttemplates: "projects; L C R U D",
    estquotes: "estimating; L C R U D",
    taxgroups: "tax; L C R U D",
    taxusecodes: "tax; L C R U D",
    countries: "reference; L R",
    zones: "reference; L R",
    timezones: "reference; L R",
    glcategories: "glaccounts; L R",
    costcenters: "glaccounts; L R",
    stagetypes: "setup; L R"
  }
  const named = [
    "shipmentlines",
    "orders",
    "orderlines",
    "invoices",
    "customers",
    "shiptos",
    "customfields",
    "contactnames",
    "b2busers",
    "inventorytransfers",
    "inventorycounts",
    "serviceordertimes"
  ]
  const fixed = ["countries", "zones", "timezones", "ccprocessors"]

  it("are all present, with their basis", () => {
    assert.deepStrictEqual(
      sorted(resources.filter(({ basis }) => basis !== "documented").map(({ path }) => path)),
      sorted(Object.keys(rows))
    )
    for (const [path, row] of Object.entries(rows)) {
      const { area, operations, basis } = resourceOf(path)
      assert.strictEqual(`${area}; ${operations.join(" ")}`, row, path)
      assert.strictEqual(basis, named.includes(path) ? "named" : "inferred", path)
    }
  })

  it("have the common fields and, unless static, a time of change", () => {
    for (const path of Object.keys(rows)) {
      const { field, modifiedSince } = resourceOf(path)
      for (const name of ["cancel", "entrydate", "externalid"]) assert.isTrue(field.has(name), `${path}.${name}`)
      assert.strictEqual(field.has("lastchangedate"), !fixed.includes(path), path)
      assert.strictEqual(modifiedSince, !fixed.includes(path), path)
    }
  })
})

describe("parents", () => {
  it("of resources without modifiedsince are stated where lists can be filtered by them", () => {
    const parents = [...serviceV2.resources.values()].flatMap(({ path, parent }) =>
      parent === null ? [] : [`${path} by ${parent.field} of ${parent.resource}`]
    )
    assert.deepStrictEqual(sorted(parents), [
      "payments by invoiceid of invoices",
      "rmareturns by invoiceid of invoices",
      "vendororderfroms by vendorid of vendors"
    ])
  })
})
