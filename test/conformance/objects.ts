/** The documented facts of seventeen resources, which `resources.ts` includes. */
import { fresh, idOf, type Company, type Row } from "./harness.ts"
import type { Field, Resource } from "./resources.ts"
import { makeBill, makeGlAccount } from "./world.ts"

/** A field with the data for a test of writing it. */
export interface ObjectField extends Field {
  /** Read-only: a value sent is ignored. */
  readonly ro?: boolean
  /** Its maximum length (of the code half for a pair). */
  readonly length?: number
  /** Its whole set of values, each with a meaning in the documents. */
  readonly values?: readonly number[]
}

export interface ObjectResource extends Resource {
  readonly fields: readonly ObjectField[]
  /** The required field, unique in any case. */
  readonly key?: string
  /** The required fields. */
  readonly base: () => Row
}

const int = (fact: string, name: string, values?: readonly number[]): ObjectField => ({
  fact,
  name,
  kind: "int",
  sample: values?.at(-1) ?? 7,
  ...(values === undefined ? {} : { values })
})
const str = (fact: string, name: string, length?: number): ObjectField => ({
  fact,
  name,
  kind: "string",
  sample: `some ${name}`.slice(0, length ?? 100),
  ...(length === undefined ? {} : { length })
})
const bool = (fact: string, name: string): ObjectField => ({ fact, name, kind: "bool", sample: true })
const day = (fact: string, name: string): ObjectField => ({ fact, name, kind: "day", sample: "2026-01-15" })
const time = (fact: string, name: string): ObjectField => ({
  fact,
  name,
  kind: "time",
  sample: "2026-01-15T10:20:30.000001Z"
})
const dec = (fact: string, name: string, decimals: number): ObjectField => ({
  fact,
  name,
  kind: { decimals },
  sample: decimals === 0 ? "12" : `12.5${"0".repeat(decimals - 1)}`
})
const pair = (fact: string, name: string, code: string, table: string, key: string, length: number): ObjectField => ({
  fact,
  name,
  kind: "int",
  sample: undefined,
  length,
  pair: { code, table, key }
})
const ro = (field: ObjectField): ObjectField => ({ ...field, ro: true })
const entry = (fact: string): ObjectField => ro(time(fact, "entrydate"))
const changed = (fact: string): ObjectField => ({ ...ro(time(fact, "lastchangedate")), maintained: true })

interface ObjectDefinition {
  /** The facts of its operations, its filters, and its dates. */
  readonly facts: readonly [ops: string, filters: string, since: string]
  readonly area: string
  readonly ops: string
  readonly filters: readonly string[]
  readonly since?: boolean
  readonly cancel?: boolean
  readonly row: string
  readonly fields: readonly ObjectField[]
  readonly key?: string
  readonly base?: () => Row
  readonly body?: (c: Company) => Promise<Row>
}

function object(path: string, definition: ObjectDefinition): ObjectResource {
  const [ops, filters, since] = definition.facts
  const base = definition.base ?? (() => ({}))
  const body = definition.body ?? (async () => base())
  return {
    path,
    area: definition.area,
    ops: definition.ops.split(" ") as Resource["ops"],
    filters: definition.filters,
    modifiedsince: definition.since === true,
    cancel: definition.cancel !== false,
    facts: { ops, filters, row: definition.row, since },
    make: async (c) => c.create(path, await body(c)),
    body,
    change: { externalid: "changed" },
    fields: definition.fields,
    base,
    ...(definition.key === undefined ? {} : { key: definition.key })
  }
}

const PRIORITY = [0, 1, 2, 3]

export const OBJECTS: readonly ObjectResource[] = [
  object("ardailycloses", {
    facts: ["ARDAILYCLOSES-01", "ARDAILYCLOSES-02", "ARDAILYCLOSES-03"],
    area: "payments",
    ops: "L C B",
    filters: ["inventorylocationid"],
    row: "EPR-05",
    fields: [
      pair("ARDAILYCLOSES-04", "inventorylocationid", "inventorylocation", "inventorylocations", "locationcode", 20),
      day("ARDAILYCLOSES-05", "closedate"),
      dec("ARDAILYCLOSES-06", "actualcash", 4),
      dec("ARDAILYCLOSES-07", "actualchecks", 4),
      dec("ARDAILYCLOSES-08", "cashdrawerfloat", 4),
      dec("ARDAILYCLOSES-09", "depositeamount", 4),
      dec("ARDAILYCLOSES-10", "actualcc", 4),
      dec("ARDAILYCLOSES-11", "overshort", 4),
      dec("ARDAILYCLOSES-12", "gl_cash", 4),
      dec("ARDAILYCLOSES-13", "gl_cc", 4),
      dec("ARDAILYCLOSES-14", "gl_checks", 4),
      dec("ARDAILYCLOSES-15", "sys_cash", 4),
      dec("ARDAILYCLOSES-16", "sys_cc", 4),
      dec("ARDAILYCLOSES-17", "sys_checks", 4),
      str("ARDAILYCLOSES-18", "currencybreakdown"),
      str("ARDAILYCLOSES-19", "currency", 10),
      time("ARDAILYCLOSES-20", "entrydate"),
      bool("ARDAILYCLOSES-21", "cancel"),
      str("ARDAILYCLOSES-22", "externalid", 100)
    ]
  }),
  object("apbilllines", {
    facts: ["APBILLLINES-01", "APBILLLINES-02", "APBILLLINES-03"],
    area: "bills",
    ops: "L C B R",
    filters: ["jobid", "description"],
    cancel: false,
    row: "EPR-07",
    body: async (c) => ({
      apbillid: idOf(await makeBill(c)),
      glaccountid: idOf(await makeGlAccount(c)),
      amount: "10"
    }),
    fields: [
      int("APBILLLINES-04", "apbillid"),
      dec("APBILLLINES-05", "amount", 4),
      pair("APBILLLINES-06", "glaccountid", "glaccount", "glaccounts", "name", 60),
      int("APBILLLINES-07", "invreceiveid"),
      int("APBILLLINES-08", "jobid"),
      pair("APBILLLINES-09", "glcategoryid", "glcategory", "glcategories", "code", 20),
      pair("APBILLLINES-10", "costcodeid", "costcode", "costcodes", "code", 20),
      str("APBILLLINES-12", "description", 100),
      int("APBILLLINES-13", "isretainer", [0, 1]),
      dec("APBILLLINES-14", "curratenumber", 10),
      str("APBILLLINES-15", "externalid", 100)
    ]
  }),
  object("teamprojectreminders", {
    facts: ["TEAMPROJECTREMINDERS-01", "TEAMPROJECTREMINDERS-02", "TEAMPROJECTREMINDERS-03"],
    area: "projects",
    // U: added by I-02, because the lifecycle of a reminder needs it.
    ops: "L C B R U",
    filters: ["status", "genuserid", "teamprojecttaskid"],
    since: true,
    row: "EPR-08",
    fields: [
      pair("TEAMPROJECTREMINDERS-04", "genuserid", "genuser", "users", "login", 50),
      int("TEAMPROJECTREMINDERS-05", "teamprojecttaskid"),
      day("TEAMPROJECTREMINDERS-06", "reminderdate"),
      str("TEAMPROJECTREMINDERS-07", "note", 255),
      bool("TEAMPROJECTREMINDERS-08", "status"),
      bool("TEAMPROJECTREMINDERS-09", "cancel"),
      entry("TEAMPROJECTREMINDERS-10"),
      changed("TEAMPROJECTREMINDERS-11"),
      str("TEAMPROJECTREMINDERS-12", "externalid", 100)
    ]
  }),
  object("teamprojecttasktags", {
    facts: ["TEAMPROJECTTASKTAGS-01", "TEAMPROJECTTASKTAGS-02", "TEAMPROJECTTASKTAGS-03"],
    area: "projects",
    ops: "L C B R",
    filters: ["teamprojecttaskid"],
    since: true,
    row: "EPR-09",
    fields: [
      int("TEAMPROJECTTASKTAGS-04", "teamprojecttaskid"),
      pair("TEAMPROJECTTASKTAGS-05", "teamprojecttagid", "teamprojecttag", "teamprojecttags", "name", 100),
      bool("TEAMPROJECTTASKTAGS-06", "cancel"),
      entry("TEAMPROJECTTASKTAGS-07"),
      changed("TEAMPROJECTTASKTAGS-08"),
      str("TEAMPROJECTTASKTAGS-09", "externalid", 100)
    ]
  }),
  object("teamprojectrecurringtasks", {
    facts: ["TEAMPROJECTRECURRINGTASKS-01", "TEAMPROJECTRECURRINGTASKS-02", "TEAMPROJECTRECURRINGTASKS-03"],
    area: "projects",
    ops: "L C B R U",
    filters: ["title", "description", "teamprojectid"],
    since: true,
    row: "EPR-10",
    fields: [
      pair("TEAMPROJECTRECURRINGTASKS-04", "teamprojectid", "teamproject", "teamprojects", "code", 30),
      int("TEAMPROJECTRECURRINGTASKS-05", "teamprojectmilestoneid"),
      str("TEAMPROJECTRECURRINGTASKS-06", "title", 255),
      str("TEAMPROJECTRECURRINGTASKS-07", "description"),
      pair(
        "TEAMPROJECTRECURRINGTASKS-08",
        "teamprojectstatusid",
        "teamprojectstatus",
        "teamprojectstatuses",
        "name",
        100
      ),
      int("TEAMPROJECTRECURRINGTASKS-09", "priority", PRIORITY),
      dec("TEAMPROJECTRECURRINGTASKS-10", "estimatedhours", 6),
      pair("TEAMPROJECTRECURRINGTASKS-11", "assignuserid", "assignuser", "users", "login", 50),
      int("TEAMPROJECTRECURRINGTASKS-12", "frequency", [0, 1, 2, 3]),
      int("TEAMPROJECTRECURRINGTASKS-13", "intervaldays"),
      int("TEAMPROJECTRECURRINGTASKS-14", "dayofweek", [0, 1, 2, 3, 4, 5, 6]),
      int("TEAMPROJECTRECURRINGTASKS-15", "dayofmonth"),
      day("TEAMPROJECTRECURRINGTASKS-16", "nextrundate"),
      day("TEAMPROJECTRECURRINGTASKS-17", "enddate"),
      ro(day("TEAMPROJECTRECURRINGTASKS-18", "lastrundate")),
      bool("TEAMPROJECTRECURRINGTASKS-19", "enabled"),
      bool("TEAMPROJECTRECURRINGTASKS-20", "cancel"),
      entry("TEAMPROJECTRECURRINGTASKS-21"),
      changed("TEAMPROJECTRECURRINGTASKS-22"),
      str("TEAMPROJECTRECURRINGTASKS-23", "externalid", 100)
    ]
  }),
  object("teamprojecttemplateitems", {
    facts: ["TEAMPROJECTTEMPLATEITEMS-01", "TEAMPROJECTTEMPLATEITEMS-02", "TEAMPROJECTTEMPLATEITEMS-03"],
    area: "projects",
    ops: "L C B R U D",
    filters: ["title", "description"],
    since: true,
    row: "EPR-11",
    fields: [
      pair(
        "TEAMPROJECTTEMPLATEITEMS-04",
        "teamprojecttemplateid",
        "teamprojecttemplate",
        "teamprojecttemplates",
        "name",
        100
      ),
      pair("TEAMPROJECTTEMPLATEITEMS-05", "parentitemid", "parentitem", "teamprojecttemplateitems", "title", 255),
      int("TEAMPROJECTTEMPLATEITEMS-06", "itemtype", [0, 1]),
      str("TEAMPROJECTTEMPLATEITEMS-07", "title", 255),
      str("TEAMPROJECTTEMPLATEITEMS-08", "description"),
      int("TEAMPROJECTTEMPLATEITEMS-09", "priority", PRIORITY),
      dec("TEAMPROJECTTEMPLATEITEMS-10", "estimatedhours", 6),
      int("TEAMPROJECTTEMPLATEITEMS-11", "offsetdays"),
      int("TEAMPROJECTTEMPLATEITEMS-12", "durationdays"),
      bool("TEAMPROJECTTEMPLATEITEMS-13", "assignrole"),
      int("TEAMPROJECTTEMPLATEITEMS-14", "sortorder"),
      bool("TEAMPROJECTTEMPLATEITEMS-15", "cancel"),
      entry("TEAMPROJECTTEMPLATEITEMS-16"),
      changed("TEAMPROJECTTEMPLATEITEMS-17"),
      str("TEAMPROJECTTEMPLATEITEMS-18", "externalid", 100)
    ]
  }),
  object("teamprojectautomations", {
    facts: ["TEAMPROJECTAUTOMATIONS-01", "TEAMPROJECTAUTOMATIONS-02", "TEAMPROJECTAUTOMATIONS-03"],
    area: "projects",
    ops: "L C B",
    filters: ["name", "teamprojectid"],
    since: true,
    row: "EPR-12",
    fields: [
      pair("TEAMPROJECTAUTOMATIONS-04", "teamprojectid", "teamproject", "teamprojects", "code", 30),
      str("TEAMPROJECTAUTOMATIONS-05", "name", 200),
      int("TEAMPROJECTAUTOMATIONS-06", "triggertype", [0, 1, 2, 3, 4, 5, 6]),
      str("TEAMPROJECTAUTOMATIONS-07", "triggervalue"),
      int("TEAMPROJECTAUTOMATIONS-08", "actiontype", [0, 1, 2, 3, 4, 5]),
      str("TEAMPROJECTAUTOMATIONS-09", "actionvalue"),
      bool("TEAMPROJECTAUTOMATIONS-10", "enabled"),
      int("TEAMPROJECTAUTOMATIONS-11", "sortorder"),
      bool("TEAMPROJECTAUTOMATIONS-12", "cancel"),
      entry("TEAMPROJECTAUTOMATIONS-13"),
      changed("TEAMPROJECTAUTOMATIONS-14"),
      str("TEAMPROJECTAUTOMATIONS-15", "externalid", 100)
    ]
  }),
  object("emailtemplates", {
    facts: ["EMAILTEMPLATES-01", "EMAILTEMPLATES-02", "EMAILTEMPLATES-03"],
    area: "setup",
    ops: "L C B R U",
    filters: ["name", "action"],
    row: "EPR-13",
    key: "action",
    base: () => ({ action: fresh("act") }),
    fields: [
      str("EMAILTEMPLATES-05", "action", 20),
      str("EMAILTEMPLATES-06", "name", 200),
      str("EMAILTEMPLATES-07", "subject", 255),
      str("EMAILTEMPLATES-08", "body"),
      bool("EMAILTEMPLATES-09", "cancel"),
      str("EMAILTEMPLATES-10", "externalid", 100)
    ]
  }),
  object("producttypetaxes", {
    facts: ["PRODUCTTYPETAXES-01", "PRODUCTTYPETAXES-02", "PRODUCTTYPETAXES-03"],
    area: "tax",
    ops: "L C B R U D",
    filters: ["name"],
    row: "EPR-14",
    fields: [
      str("PRODUCTTYPETAXES-04", "name", 255),
      dec("PRODUCTTYPETAXES-05", "taxrate", 6),
      pair("PRODUCTTYPETAXES-06", "glaccountid", "glaccount", "glaccounts", "name", 20),
      bool("PRODUCTTYPETAXES-07", "cancel"),
      entry("PRODUCTTYPETAXES-08"),
      changed("PRODUCTTYPETAXES-09"),
      str("PRODUCTTYPETAXES-10", "states"),
      str("PRODUCTTYPETAXES-11", "externalid", 100)
    ]
  }),
  object("stages", {
    facts: ["STAGES-01", "STAGES-02", "STAGES-03"],
    area: "setup",
    ops: "L C B R U D",
    filters: ["name", "code", "description"],
    row: "EPR-15",
    fields: [
      int("STAGES-04", "stagetypeid"),
      str("STAGES-05", "name", 100),
      str("STAGES-06", "code", 15),
      str("STAGES-07", "description"),
      str("STAGES-08", "autotrigger", 100),
      entry("STAGES-09"),
      bool("STAGES-10", "cancel"),
      int("STAGES-11", "sortorder"),
      str("STAGES-12", "externalid", 100)
    ]
  }),
  object("estquotepricelists", {
    facts: ["ESTQUOTEPRICELISTS-01", "ESTQUOTEPRICELISTS-02", "ESTQUOTEPRICELISTS-03"],
    area: "estimating",
    ops: "L C B",
    filters: ["name"],
    since: true,
    row: "EPR-16",
    fields: [
      int("ESTQUOTEPRICELISTS-04", "stdsizeid"),
      pair("ESTQUOTEPRICELISTS-05", "worktypeid", "worktype", "worktypes", "name", 100),
      str("ESTQUOTEPRICELISTS-06", "name", 50),
      bool("ESTQUOTEPRICELISTS-07", "cancel"),
      entry("ESTQUOTEPRICELISTS-08"),
      changed("ESTQUOTEPRICELISTS-09"),
      int("ESTQUOTEPRICELISTS-10", "maxinkside1"),
      int("ESTQUOTEPRICELISTS-11", "maxinkside2"),
      dec("ESTQUOTEPRICELISTS-12", "trimchargepermpercut", 2),
      dec("ESTQUOTEPRICELISTS-13", "trimmincharge", 2),
      dec("ESTQUOTEPRICELISTS-14", "qtyperbox", 0),
      str("ESTQUOTEPRICELISTS-15", "notes"),
      int("ESTQUOTEPRICELISTS-16", "point2id"),
      dec("ESTQUOTEPRICELISTS-17", "covereach_blackinandout", 5),
      dec("ESTQUOTEPRICELISTS-18", "covereach_coloroutblackin", 5),
      dec("ESTQUOTEPRICELISTS-19", "covereach_colorinandout", 5),
      dec("ESTQUOTEPRICELISTS-20", "costper_nocover", 5),
      dec("ESTQUOTEPRICELISTS-21", "covereach_colorinblackout", 5),
      int("ESTQUOTEPRICELISTS-22", "noinkcharge", [0, 1]),
      dec("ESTQUOTEPRICELISTS-23", "scrap_percent", 2),
      int("ESTQUOTEPRICELISTS-24", "scrap_sheets_max"),
      str("ESTQUOTEPRICELISTS-25", "externalid", 100)
    ]
  }),
  object("vendororderfroms", {
    facts: ["VENDORORDERFROMS-01", "VENDORORDERFROMS-02", "VENDORORDERFROMS-03"],
    area: "vendors",
    ops: "L C B",
    filters: ["vendorid"],
    row: "EPR-17",
    fields: [
      pair("VENDORORDERFROMS-04", "vendorid", "vendor", "vendors", "vendorcode", 30),
      str("VENDORORDERFROMS-05", "companyname", 100),
      str("VENDORORDERFROMS-06", "contactname", 100),
      str("VENDORORDERFROMS-07", "address", 100),
      str("VENDORORDERFROMS-08", "address2", 100),
      str("VENDORORDERFROMS-09", "city", 50),
      str("VENDORORDERFROMS-10", "state", 20),
      str("VENDORORDERFROMS-11", "zip", 15),
      str("VENDORORDERFROMS-12", "country", 20),
      str("VENDORORDERFROMS-13", "phone", 20),
      str("VENDORORDERFROMS-14", "fax", 20),
      str("VENDORORDERFROMS-15", "email", 50),
      str("VENDORORDERFROMS-16", "mailstop", 20),
      entry("VENDORORDERFROMS-17"),
      bool("VENDORORDERFROMS-18", "cancel"),
      changed("VENDORORDERFROMS-19"),
      ro(str("VENDORORDERFROMS-20", "addressverified", 32)),
      str("VENDORORDERFROMS-21", "externalid", 100)
    ]
  }),
  object("assetcategories", {
    facts: ["ASSETCATEGORIES-01", "ASSETCATEGORIES-02", "ASSETCATEGORIES-03"],
    area: "assets",
    ops: "L C B",
    filters: ["name"],
    row: "EPR-18",
    fields: [
      str("ASSETCATEGORIES-04", "name", 255),
      entry("ASSETCATEGORIES-05"),
      changed("ASSETCATEGORIES-06"),
      bool("ASSETCATEGORIES-07", "cancel"),
      pair(
        "ASSETCATEGORIES-08",
        "accumulateddepreciationglaccountid",
        "accumulateddepreciationglaccount",
        "glaccounts",
        "name",
        20
      ),
      pair("ASSETCATEGORIES-09", "assetglaccountid", "assetglaccount", "glaccounts", "name", 20),
      pair("ASSETCATEGORIES-10", "expenseglaccountid", "expenseglaccount", "glaccounts", "name", 20),
      pair(
        "ASSETCATEGORIES-11",
        "expensedepreciationglaccountid",
        "expensedepreciationglaccount",
        "glaccounts",
        "name",
        20
      ),
      str("ASSETCATEGORIES-12", "externalid", 100)
    ]
  }),
  object("ccaccounts", {
    facts: ["CCACCOUNTS-01", "CCACCOUNTS-02", "CCACCOUNTS-03"],
    area: "banking",
    ops: "L C B R",
    filters: ["name"],
    since: true,
    row: "EPR-20",
    fields: [
      str("CCACCOUNTS-04", "name", 100),
      pair("CCACCOUNTS-05", "ccprocessorid", "ccprocessor", "ccprocessors", "name", 100),
      pair("CCACCOUNTS-06", "checkacctid", "checkacct", "checkaccounts", "name", 30),
      bool("CCACCOUNTS-07", "cancel"),
      str("CCACCOUNTS-08", "externalid", 100),
      changed("CCACCOUNTS-09")
    ]
  }),
  object("itemcomparisongroups", {
    facts: ["ITEMCOMPARISONGROUPS-01", "ITEMCOMPARISONGROUPS-02", "ITEMCOMPARISONGROUPS-03"],
    area: "items",
    ops: "L C B R U",
    filters: ["name"],
    row: "EPR-21",
    fields: [
      str("ITEMCOMPARISONGROUPS-04", "name", 255),
      bool("ITEMCOMPARISONGROUPS-05", "hidden"),
      bool("ITEMCOMPARISONGROUPS-06", "cancel"),
      str("ITEMCOMPARISONGROUPS-07", "externalid", 100),
      changed("ITEMCOMPARISONGROUPS-08")
    ]
  }),
  object("taskstatuses", {
    facts: ["TASKSTATUSES-01", "TASKSTATUSES-02", "TASKSTATUSES-04"],
    area: "setup",
    ops: "L C B R U",
    filters: ["name"],
    row: "EPR-22",
    key: "name",
    base: () => ({ name: fresh("status") }),
    fields: [
      str("TASKSTATUSES-06", "name", 100),
      bool("TASKSTATUSES-07", "cancel"),
      str("TASKSTATUSES-08", "externalid", 100)
    ]
  }),
  object("areas", {
    facts: ["AREAS-01", "AREAS-02", "AREAS-03"],
    area: "setup",
    ops: "L C B R U D",
    filters: ["name"],
    row: "EPR-25",
    key: "name",
    base: () => ({ name: fresh("area") }),
    fields: [
      str("AREAS-05", "name", 100),
      // Stored with 6 decimals, shown with 4 (F-03).
      dec("AREAS-06", "applicationfee", 4),
      bool("AREAS-07", "cancel"),
      str("AREAS-08", "externalid", 100)
    ]
  })
]

export function objectOf(path: string): ObjectResource {
  const match = OBJECTS.find((each) => each.path === path)
  if (match === undefined) throw new Error(`no such object: ${path}`)
  return match
}
