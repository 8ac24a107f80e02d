/** Vendor bills and their lines. */
import { assert, describe, it } from "vitest"
import {
  allowed,
  control,
  fresh,
  idOf,
  ids,
  integer,
  isDecimal,
  keptPromises,
  newCompany,
  plusDays,
  refused,
  refusedEntries,
  row,
  rows,
  sameDecimal,
  succeeded,
  text,
  today,
  useServer,
  type Company,
  type Row
} from "./harness.ts"
import { makeBill, makeGlAccount, makeVendor } from "./world.ts"

useServer()

interface Bill {
  readonly c: Company
  readonly apbillid: number
  readonly account: Row
  readonly glaccountid: number
}

async function bill(billtotal = "100"): Promise<Bill> {
  const c = await newCompany()
  const account = await makeGlAccount(c)
  return { c, apbillid: idOf(await makeBill(c, { billtotal })), account, glaccountid: idOf(account) }
}

describe("a vendor bill line", () => {
  it("[WRITE-17][WRITE-19][APBILLLINES-04][APBILLLINES-05][I-05] is returned with the totals of the bill", async () => {
    const { c, apbillid, glaccountid, account } = await bill()
    const line = await c.create("apbilllines", { apbillid, glaccountid, amount: "30.5" })
    assert.deepInclude(line, { apbillid, glaccountid, glaccount: account["name"] })
    isDecimal(line["amount"], "30.5", 4)
    isDecimal(line["billtotal"], "100", 4)
    isDecimal(line["distributed"], "30.5", 4)
    isDecimal(line["undistributed"], "69.5", 4)
    const more = await c.create("apbilllines", { apbillid, glaccountid, amount: "69.5" })
    isDecimal(more["distributed"], "100", 4)
    isDecimal(more["undistributed"], "0", 4)
    const read = await c.read("apbilllines", idOf(line))
    for (const name of ["billtotal", "distributed", "undistributed"]) assert.notProperty(read, name)
    isDecimal((await c.read("apbills", apbillid))["distributed"], "100", 4)
    isDecimal((await c.read("apbills", apbillid))["undistributed"], "0", 4)
  })

  it("[WRITE-17][EP-12][CODE-03] requires bill, account and amount, and names each missing one", async () => {
    const { c, apbillid, glaccountid } = await bill()
    const error = refused(await c.post("/apbilllines", {}), "invalid_request")
    const fields = rows(error["errors"]).map((each) => each["field"])
    assert.include(fields, "apbillid")
    assert.include(fields, "amount")
    assert.isTrue(fields.includes("glaccountid") || fields.includes("glaccount"))
    for (const each of rows(error["errors"])) assert.strictEqual(each["code"], "required")
    refusedEntries(await c.post("/apbilllines", { apbillid, glaccountid }), "amount:required")
    refusedEntries(await c.post("/apbilllines", { glaccountid, amount: "1" }), "apbillid:required")
    assert.isEmpty(await c.list("/apbilllines"))
  })

  it("[APBILLLINES-06][WRITE-17][F-09] names its account by id or by exact name", async () => {
    const { c, apbillid, account, glaccountid } = await bill()
    const name = text(account["name"])
    assert.strictEqual(
      (await c.create("apbilllines", { apbillid, glaccount: name, amount: "1" }))["glaccountid"],
      glaccountid
    )
    for (const wrong of [name.toUpperCase(), name.slice(1), `${name} `, "unknown"]) {
      refused(await c.post("/apbilllines", { apbillid, glaccount: wrong, amount: "1" }), "unknown_value", "glaccount")
    }
    const other = await makeGlAccount(c)
    refused(
      await c.post("/apbilllines", { apbillid, glaccountid, glaccount: other["name"], amount: "1" }),
      "conflicting_reference"
    )
  })

  it("[APBILLLINES-19][WRITE-20][X-13][I-23] accepts an account name of 60 characters, not of 61", async () => {
    const { c, apbillid } = await bill()
    const name = fresh("acct").padEnd(60, "x")
    await makeGlAccount(c, { name })
    const line = await c.create("apbilllines", { apbillid, glaccount: name, amount: "1" })
    assert.strictEqual(line["glaccount"], name)
    refusedEntries(
      await c.post("/apbilllines", { apbillid, glaccount: "x".repeat(61), amount: "1" }),
      "glaccount:too_long"
    )
  })

  it("[RULE-08][WRITE-17][WRITE-18] never exceeds the undistributed amount", async () => {
    const { c, apbillid, glaccountid } = await bill("10")
    refused(await c.post("/apbilllines", { apbillid, glaccountid, amount: "10.0001" }), "distribution_exceeds_total")
    await c.create("apbilllines", { apbillid, glaccountid, amount: "6" })
    refused(await c.post("/apbilllines", { apbillid, glaccountid, amount: "4.0001" }), "distribution_exceeds_total")
    await c.create("apbilllines", { apbillid, glaccountid, amount: "4" })
    refused(await c.post("/apbilllines", { apbillid, glaccountid, amount: "0.0001" }), "distribution_exceeds_total")
    assert.lengthOf(await c.list("/apbilllines"), 2)
  })

  it("[D-05][WRITE-18] rejects a zero amount, and accepts a negative one as a reversal", async () => {
    const { c, apbillid, glaccountid } = await bill("10")
    for (const amount of ["0", "0.0000", "-0"])
      refused(await c.post("/apbilllines", { apbillid, glaccountid, amount }), "rule_violation")
    await c.create("apbilllines", { apbillid, glaccountid, amount: "10" })
    const back = await c.create("apbilllines", { apbillid, glaccountid, amount: "-3" })
    isDecimal(back["undistributed"], "3", 4)
  })

  it("[CODE-24][STATE-11][WRITE-18] is rejected on a posted bill", async () => {
    const { c, apbillid, glaccountid } = await bill()
    await c.create("apbilllines", { apbillid, glaccountid, amount: "100" })
    const posted = succeeded(await c.post(`/apbills/${apbillid}/post`, {}))
    assert.isNotNull(posted["voucherid"])
    const before = await c.list("/apbilllines")
    refused(await c.post("/apbilllines", { apbillid, glaccountid, amount: "1" }), "apbill_already_posted")
    refused(await c.post("/apbilllines", { apbillid, glaccountid, amount: "-1" }), "apbill_already_posted")
    assert.deepEqual(await c.list("/apbilllines"), before)
  })

  it("[CODE-24][STATE-11] is rejected once the bill has a voucherid, whatever set it", async () => {
    const c = await newCompany()
    const glaccountid = idOf(await makeGlAccount(c))
    const [voucher] = await c.put("vouchers", [{ voucher: fresh("v") }])
    const [posted] = await c.put("apbills", [{ billtotal: "10", voucherid: idOf(row(voucher)) }])
    refused(
      await c.post("/apbilllines", { apbillid: idOf(row(posted)), glaccountid, amount: "1" }),
      "apbill_already_posted"
    )
  })

  it("[WRITE-18][I-22][CODE-26][APBILLLINES-08][APBILLLINES-10] has a bill, job and cost code that must resolve", async () => {
    const { c, apbillid, glaccountid } = await bill()
    const good = { apbillid, glaccountid, amount: "1" }
    refused(await c.post("/apbilllines", { ...good, apbillid: 999_999_999 }), "unknown_value", "apbillid")
    refused(await c.post("/apbilllines", { ...good, glaccountid: 999_999_999 }), "unknown_value", "glaccountid")
    refused(await c.post("/apbilllines", { ...good, jobid: 999_999_999 }), "unknown_value", "jobid")
    refused(await c.post("/apbilllines", { ...good, costcodeid: 999_999_999 }), "unknown_value", "costcodeid")
    const [job] = await c.put("jobs", [{ name: "House" }])
    const [code] = await c.put("costcodes", [{ code: "LAB" }])
    const line = await c.create("apbilllines", { ...good, jobid: idOf(row(job)), costcodeid: idOf(row(code)) })
    assert.deepInclude(line, { jobid: idOf(row(job)), costcodeid: idOf(row(code)), costcode: "LAB" })
    assert.deepEqual(ids(await c.list(`/apbilllines?jobid=${idOf(row(job))}`)), [idOf(line)])
    const theirs = idOf(await makeBill(await newCompany()))
    refused(await c.post("/apbilllines", { ...good, apbillid: theirs }), "unknown_value", "apbillid")
  })

  it("[APBILLLINES-11][APBILLLINES-20][I-24] shows the category code beside its id", async () => {
    const c = await newCompany()
    const [category] = await c.put("glcategories", [{ code: "CAT" }])
    const [line] = await c.put("apbilllines", [{ glcategoryid: idOf(row(category)) }])
    assert.deepInclude(await c.read("apbilllines", idOf(row(line))), {
      glcategoryid: idOf(row(category)),
      glcategory: "CAT"
    })
  })

  it("[APBILLLINES-01][APBILLLINES-16][X-04] is neither changed nor cancelled", async () => {
    const { c, apbillid, glaccountid } = await bill()
    const id = idOf(await c.create("apbilllines", { apbillid, glaccountid, amount: "1" }))
    for (const answer of [await c.patch(`/apbilllines/${id}`, {}), await c.del(`/apbilllines/${id}`)]) {
      assert.deepEqual(
        allowed(answer).filter((verb) => verb !== "HEAD"),
        ["GET"]
      )
    }
  })

  it("[WRITE-17][RULE-08][G-02] in a batch counts the lines before it", async () => {
    const { c, apbillid, glaccountid } = await bill("10")
    const line = (amount: string) => ({ apbillid, glaccountid, amount })
    const body = succeeded(await c.post("/apbilllines/batch", [line("6"), line("6"), line("4")]), 207)
    assert.deepEqual(
      rows(body["results"]).map((each) => each["status"]),
      [201, 422, 201]
    )
  })

  it("[RULE-08] of the full amount succeeds once among ten concurrent requests", async () => {
    const { c, apbillid, glaccountid } = await bill("10")
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => c.post("/apbilllines", { apbillid, glaccountid, amount: "10" }))
    )
    assert.lengthOf(
      answers.filter((answer) => answer.status === 201),
      1
    )
    const coded = await c.list("/apbilllines")
    assert.isTrue(sameDecimal(text(coded[0]?.["amount"]), "10"))
  })
})

describe("a vendor bill", () => {
  it("[STATE-11][STATE-09][SPECIAL-08][J-07] gets its voucher by posting, once", async () => {
    const { c, apbillid, glaccountid } = await bill("10")
    await c.create("apbilllines", { apbillid, glaccountid, amount: "10" })
    assert.isNull((await c.read("apbills", apbillid))["voucherid"])
    const poster = await c.with("bills:write")
    const posted = succeeded(await poster.post(`/apbills/${apbillid}/post`))
    integer(posted["voucherid"])
    refused(await poster.post(`/apbills/${apbillid}/post`, {}), "apbill_already_posted")
    refused(await poster.post("/apbills/999999999/post", {}), "not_found")
    refused(await (await c.with("bills:read")).post(`/apbills/${apbillid}/post`, {}), "insufficient_scope")
  })

  it("[RULE-03][J-07] of a closed period is not posted", async () => {
    const c = await newCompany()
    const day = await today()
    const apbillid = idOf(await makeBill(c, { billdate: plusDays(day, -10) }))
    await control("PUT", `/companies/${c.id}`, { closedThrough: plusDays(day, -10) })
    refused(await c.post(`/apbills/${apbillid}/post`, {}), "period_closed")
    assert.isNull((await c.read("apbills", apbillid))["voucherid"])
  })

  it("[SCOPE-12][SCOPE-07] belongs to the area bills, and its vendor to vendors", async () => {
    const { c, apbillid } = await bill()
    assert.deepEqual(ids(await (await c.with("bills:read")).list("/apbills")), [apbillid])
    refused(await (await c.with("vendors:read")).get("/apbills"), "insufficient_scope")
    assert.lengthOf(await (await c.with("vendors:read")).list("/vendors"), 1)
    refused(await (await c.with("bills:read")).get("/vendors"), "insufficient_scope")
  })

  it("[CODE-11][LIM-11][CODE-01] has a vendor with a unique code and a licensed limit", async () => {
    const c = await newCompany()
    await makeVendor(c, { vendorcode: "ACME" })
    refused(await c.post("/vendors", { vendorcode: "ACME", name: "x" }), "duplicate")
    await c.settings({ recordLimits: { vendors: 1 } })
    refused(await c.post("/vendors", { vendorcode: "NEXT", name: "x" }), "record_limit_reached")
  })
})

keptPromises()
