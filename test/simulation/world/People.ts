/**
 * The records that people push, and the changes that other people make at the source meanwhile.
 *
 * Promise: every planned record has a key or a value that no other record has. So the source alone shows what was done.
 * The changes of other people are recorded with their times for the checkers.
 */
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Operation } from "../../../src/outbox/Push.ts"
import { type Chance, chance } from "../kernel/Chance.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import type { PushPlan } from "../PushPlan.ts"
import type { Source } from "./Source.ts"
import type { WriteEffect, Read } from "./WriteNetwork.ts"

/** The result that a planned record must have. */
export type Expectation =
  | { readonly kind: "created" }
  /** Another person had created it before, with other values in these fields. */
  | { readonly kind: "adopted"; readonly id: number; readonly differing: ReadonlyArray<string> }
  | { readonly kind: "changed" }
  | { readonly kind: "cancelled" }
  | { readonly kind: "refused"; readonly codes: ReadonlyArray<string> }

/** A record to be written. */
export interface PlannedRow {
  readonly number: number
  readonly company: number
  readonly resource: string
  readonly operation: Operation
  readonly externalid: string | null
  readonly recordId: string | null
  /** The record's JSON text as a push reads it. */
  readonly json: string
  /** For an update: the record's field, and the value that no other person writes there. */
  readonly sets: { readonly field: string; readonly value: string } | null
  /** Changes of other people in the meantime may change it. */
  expectation: Expectation
}

/** How a change names its record. */
type Target = Pick<PlannedRow, "externalid" | "recordId">

/** Records that are pushed as one file. */
export interface PushFile {
  readonly name: string
  readonly company: number
  readonly resource: string
  readonly rows: ReadonlyArray<PlannedRow>
  readonly text: string
}

/** A field that another person wrote. */
export interface Meddling {
  readonly company: number
  readonly resource: string
  readonly id: number
  readonly field: string
  readonly value: string
  readonly at: number
}

type Members = Readonly<Record<string, string>>

interface Kind {
  /** A body in JSON tokens. No other body contains `mark`. */
  readonly create: (mark: string, chance: Chance) => Members
  /** The record's names of members that the body names otherwise. */
  readonly renamed?: Members
  /** The member of the body that an update sets, and the record's field. */
  readonly ours?: { readonly name: string; readonly field: string }
  /** The field that other people change. */
  readonly theirs: { readonly field: string; readonly value: (mark: string) => string }
  /** A body that the source rejects. */
  readonly bad: (existing: string) => { readonly members: Members; readonly codes: ReadonlyArray<string> }
  /** A field of an existing record, which `bad` may need. */
  readonly key?: string
}

const text = (value: string) => JSON.stringify(value)
const postedInvoice = 5001
const draftInvoice = 5002

/** How each of the resources is written. */
const kinds: Readonly<Record<string, Kind>> = {
  salesmen: {
    create: (mark, chance) => ({
      name: text(`Name ${mark}`),
      salesman: String(chance.chance(0.5)),
      commissionrate: text(`${chance.integer(0, 99)}.${chance.integer(0, 999)}`),
      email1: text(`${mark}@example.org`),
      phone1: text(mark)
    }),
    ours: { name: "phone1", field: "phone1" },
    theirs: { field: "email1", value: (mark) => text(`${mark}@elsewhere`) },
    key: "name",
    bad: (existing) => ({ members: { name: text(existing.toUpperCase()) }, codes: ["duplicate"] })
  },
  customers: {
    create: (mark, chance) => ({
      customercode: text(`C-${mark}`),
      name: text(`Ünïcödé ${mark}`),
      creditlimit: text(`${chance.integer(0, 99999)}.5`)
    }),
    ours: { name: "name", field: "name" },
    theirs: { field: "creditlimit", value: (mark) => text(`${mark.replace(/\D/g, "")}.2500`) },
    bad: () => ({ members: { salesmanid: "999999" }, codes: ["unknown_value"] })
  },
  payments: {
    create: (mark, chance) => ({
      invoiceid: String(postedInvoice),
      amount: text(`${chance.integer(1, 90)}.25`),
      method: String(chance.integer(1, 4)),
      reference: text(mark)
    }),
    renamed: { reference: "checkid", method: "paymeth" },
    ours: { name: "reference", field: "checkid" },
    theirs: { field: "rnum", value: text },
    bad: () => ({ members: { invoiceid: String(draftInvoice) }, codes: ["rule_violation"] })
  },
  invoicelines: {
    create: (mark, chance) => ({
      invoiceid: String(draftInvoice),
      description: text(mark),
      quantity: text(`${chance.integer(1, 9)}.125`),
      price: text(`${chance.integer(1, 99)}.${chance.integer(0, 999_999)}`),
      taxable: String(chance.chance(0.5))
    }),
    renamed: { quantity: "qty", price: "priceach", taxable: "taxflag" },
    theirs: { field: "description", value: text },
    bad: () => ({ members: { invoiceid: String(postedInvoice) }, codes: ["invoice_already_posted"] })
  },
  teamprojecttasktags: {
    create: () => ({ teamprojecttaskid: "1" }),
    theirs: { field: "teamprojecttagid", value: () => "1" },
    bad: () => ({ members: { teamprojecttaskid: "999999" }, codes: ["unknown_value"] })
  },
  areas: {
    create: (mark, chance) => ({ name: text(`Area ${mark}`), applicationfee: text(`${chance.integer(0, 99)}.123456`) }),
    ours: { name: "name", field: "name" },
    theirs: { field: "applicationfee", value: (mark) => text(`${mark.replace(/\D/g, "")}.1200`) },
    key: "name",
    bad: (existing) => ({ members: { name: text(existing.toUpperCase()) }, codes: ["duplicate"] })
  },
  stages: {
    create: (mark, chance) => ({
      name: text(`Stage ${mark}`),
      code: text("same"),
      sortorder: String(chance.integer(0, 9))
    }),
    ours: { name: "description", field: "description" },
    theirs: { field: "autotrigger", value: text },
    bad: () => ({ members: { stagetypeid: "999999" }, codes: ["unknown_value"] })
  }
}

const bodyOf = (members: Members): string =>
  `{${Object.entries(members)
    .map(([name, value]) => `"${name}":${value}`)
    .join(",")}}`

/** The record that the source shows for a body. */
const recordOf = (resource: string, members: Members): Record<string, string> => {
  const { renamed = {} } = kinds[resource]!
  const record = Object.fromEntries(Object.entries(members).map(([name, value]) => [renamed[name] ?? name, value]))
  if (resource === "invoicelines") record["taxflag"] = record["taxflag"] === "true" ? "1" : "0"
  return record
}

/** The share of records that are pushed more than once. */
const overlapShare = 0.12
/** Maximum number of changes of one record by other people. */
const meddlingsMax = 3

export class People extends Actor<PushPlan> {
  private readonly chance = chance(this.drawn.seed, "people")
  private readonly luck = chance(this.drawn.seed, "meddling")
  private readonly source: Source
  private marks = 0
  /** The next id of other people: of each table where companies have equal ids, else of all. */
  private readonly nextIds = new Map<string, number>()
  /** How many externalids each company has, where companies have equal ones. */
  private readonly externalids = new Map<number, number>()
  private stopped = false
  readonly planned: Array<PlannedRow> = []
  readonly files: Array<PushFile> = []
  /** Rows that people insert by SQL, and when. */
  readonly inserted: Array<{ readonly at: number; readonly rows: ReadonlyArray<PlannedRow> }> = []
  readonly meddlings: Array<Meddling> = []
  /** Ids of the records that other people created under an externalid, by {@link nameOf}. */
  readonly others = new Map<string, Array<number>>()

  constructor(scene: Scene<PushPlan>, source: Source) {
    super(scene)
    this.source = source
  }

  static nameOf(company: number, resource: string, externalid: string): string {
    return `${company}/${resource}/${externalid}`
  }

  private mark(): string {
    return `m${++this.marks}`
  }

  private nextId(company: number, resource: string): number {
    const counted = this.drawn.later.sameNumber === null ? "" : `${company}/${resource}`
    const id = this.nextIds.get(counted) ?? 10_000
    this.nextIds.set(counted, id + 1)
    return id
  }

  private externalidOf(company: number, prefix: string, mark: string): string {
    if (this.drawn.later.sameNumber === null) return `${prefix}-${mark}`
    const number = (this.externalids.get(company) ?? 0) + 1
    this.externalids.set(company, number)
    return `${prefix}-m${number}`
  }

  /** Creates the records that exist before anything runs, and draws everything that will be pushed. */
  begin(companies: ReadonlyArray<number>): void {
    const { chance, drawn: plan } = this
    const { pushing, resources } = plan
    for (const company of companies) {
      this.put(company, "invoices", { id: String(postedInvoice), voucherid: "1", invoicetotal: text("9000000.0000") })
      this.put(company, "invoices", { id: String(draftInvoice), invoicetotal: text("0.0000") })
      this.put(company, "teamprojecttasks", { id: "1", title: text("task") })
      this.put(company, "teamprojecttags", { id: "1", name: text("tag") })
      for (const resource of resources) for (let left = plan.records; left > 0; left--) this.seed(company, resource)
    }
    const place = () => ({ company: chance.pick(companies), resource: chance.pick(resources) })
    for (let number = 0; number < pushing.files; number++) {
      const { company, resource } = place()
      const size = chance.integer(Math.ceil(pushing.records / 2), pushing.records)
      // Some records are in several files.
      const again = this.planned.filter(
        (one) => one.company === company && one.resource === resource && chance.chance(overlapShare)
      )
      if (again.length > 0) this.fired("U22 records in two files")
      const fileRows = [...again, ...Array.from({ length: size }, () => this.creation(company, resource))]
      this.files.push({
        name: `file${number}.ndjson`,
        company,
        resource,
        rows: fileRows,
        text: fileRows.map(({ json }) => `${json}\n`).join("")
      })
    }
    const insertions: Array<ReadonlyArray<PlannedRow>> = []
    for (let left = pushing.inserted; left > 0; left--) {
      const { company, resource } = place()
      const inFiles = this.files.flatMap((file) => file.rows)
      insertions.push([
        inFiles.length > 0 && chance.chance(overlapShare) ? chance.pick(inFiles) : this.creation(company, resource)
      ])
    }
    const changing = resources.filter((resource) => kinds[resource]!.ours !== undefined)
    for (let left = pushing.changes; left > 0 && changing.length > 0; left--) {
      insertions.push(this.changes(chance.pick(companies), chance.pick(changing)))
    }
    for (const rows of insertions) {
      this.inserted.push({ at: Math.round(chance.next() * 0.6 * plan.safety), rows })
    }
  }

  stop(): void {
    this.stopped = true
  }

  private addRow(row: Omit<PlannedRow, "number">): PlannedRow {
    const made = { ...row, number: this.planned.length }
    this.planned.push(made)
    return made
  }

  /** A record that other people created before. */
  private seed(company: number, resource: string, more: Members = {}): number {
    const id = this.nextId(company, resource)
    const record = recordOf(resource, kinds[resource]!.create(this.mark(), this.chance))
    if (resource === "invoicelines") record["taxflag"] = "1"
    // The source shows it so.
    if (resource === "areas") record["applicationfee"] = record["applicationfee"]!.replace(".123456", ".1235")
    this.put(company, resource, { id: String(id), ...record, ...more })
    return id
  }

  private creation(company: number, resource: string): PlannedRow {
    const { chance, drawn: plan } = this
    const { on } = plan
    const kind = kinds[resource]!
    const mark = this.mark()
    const members = kind.create(mark, chance)
    const base = { company, resource, operation: "create", recordId: null, sets: null } as const
    if (on.has("U13") && chance.chance(0.08)) {
      // If nothing rejects it, it is a record like any other.
      const externalid = this.externalidOf(company, "poison", mark)
      const json = bodyOf({ ...members, externalid: text(externalid) })
      const expectation =
        plan.pushing.poison === "item"
          ? ({ kind: "created" } as const)
          : ({ kind: "refused", codes: ["invalid_request"] } as const)
      return this.addRow({ ...base, externalid, json, expectation })
    }
    const externalid = this.externalidOf(company, "x", mark)
    const whole = { ...members, externalid: text(externalid) }
    if (on.has("U18") && chance.chance(0.12)) {
      const existing = kind.key === undefined ? "" : `${resource === "areas" ? "Area" : "Name"} m1000000`
      if (kind.key !== undefined) this.ensureKeyExists(company, resource, kind.key, existing)
      const bad = kind.bad(existing)
      this.fired(`U18 ${bad.codes[0]}`)
      const json = bodyOf({ ...whole, ...bad.members })
      return this.addRow({ ...base, externalid, json, expectation: { kind: "refused", codes: bad.codes } })
    }
    const json = bodyOf(whole)
    if (on.has("U17") && chance.chance(0.2)) {
      const name = People.nameOf(company, resource, externalid)
      const record = recordOf(resource, members)
      const canCancel = serviceV2.resources.get(resource)!.field.has("cancel")
      const how = chance.pick(["same", "differs", "cancelled", "twice"])
      const one = (more: Members) => {
        const id = this.seed(company, resource, { ...record, externalid: text(externalid), ...more })
        this.others.set(name, [...(this.others.get(name) ?? []), id])
        return id
      }
      this.fired(`U17 used by others: ${how}`)
      if (how === "cancelled" && canCancel) {
        one({ cancel: "true" })
        return this.addRow({ ...base, externalid, json, expectation: { kind: "refused", codes: ["cancelled"] } })
      }
      if (how === "twice" && !on.has("U12")) {
        one({})
        // A key of other people is unique as well.
        one(kind.key === undefined ? {} : { [kind.key]: text(`Other ${mark}`) })
        return this.addRow({
          ...base,
          externalid,
          json,
          expectation: { kind: "refused", codes: ["ambiguous_externalid"] }
        })
      }
      const ours = kind.ours
      const isOther = how === "differs" && ours !== undefined
      const id = one(isOther ? { [ours.field]: text(`other ${mark}`) } : {})
      // A field that the body does not name is no difference.
      const differing = isOther && ours.name in members ? [ours.name] : []
      return this.addRow({ ...base, externalid, json, expectation: { kind: "adopted", id, differing } })
    }
    return this.addRow({ ...base, externalid, json, expectation: { kind: "created" } })
  }

  private readonly existingKeys = new Set<string>()

  private ensureKeyExists(company: number, resource: string, key: string, value: string): void {
    const name = `${company}/${resource}`
    if (this.existingKeys.has(name)) return
    this.existingKeys.add(name)
    this.seed(company, resource, { [key]: text(value) })
  }

  /** Updates and cancels of a record that other people created, or that a push creates first. */
  private changes(company: number, resource: string): ReadonlyArray<PlannedRow> {
    const { chance } = this
    const rows: Array<PlannedRow> = []
    const base = { company, resource } as const
    let target: Target
    const roll = chance.next()
    if (roll < 0.12) {
      const isById = chance.chance(0.5)
      target = isById
        ? { externalid: null, recordId: "987654321" }
        : { externalid: this.externalidOf(company, "absent", this.mark()), recordId: null }
      const refused: Expectation = { kind: "refused", codes: ["not_found", "unknown_value"] }
      return [this.change(base, target, refused)]
    }
    if (roll < 0.45) {
      const mark = this.mark()
      const externalid = this.externalidOf(company, "x", mark)
      const json = bodyOf({ ...kinds[resource]!.create(mark, chance), externalid: text(externalid) })
      const expectation = { kind: "created" } as const
      rows.push(
        this.addRow({ ...base, operation: "create", externalid, recordId: null, sets: null, json, expectation })
      )
      target = { externalid, recordId: null }
    } else {
      const externalid = this.externalidOf(company, "their", this.mark())
      const isById = chance.chance(0.5)
      const id = this.seed(company, resource, { externalid: text(externalid) })
      target = isById ? { externalid: null, recordId: String(id) } : { externalid, recordId: null }
    }
    for (let left = chance.integer(1, 3); left > 0; left--) rows.push(this.change(base, target, { kind: "changed" }))
    const cancel = { operation: "cancel", json: "{}", sets: null, expectation: { kind: "cancelled" } } as const
    if (chance.chance(0.4)) rows.push(this.addRow({ ...base, ...target, ...cancel }))
    return rows
  }

  private change(base: Pick<PlannedRow, "company" | "resource">, target: Target, expectation: Expectation): PlannedRow {
    const { ours } = kinds[base.resource]!
    const value = this.mark()
    return this.addRow({
      ...base,
      ...target,
      operation: "update",
      json: bodyOf({ [ours!.name]: text(value) }),
      sets: { field: ours!.field, value },
      expectation
    })
  }

  /** The body that writes a record by the control plane. */
  private recordsOf(company: number, resource: string, members: Members): string {
    const number = this.source.numberOf(company)
    return `{"company":${number},"resource":"${resource}","records":[${bodyOf(members)}]}`
  }

  private put(company: number, resource: string, members: Members): void {
    this.source.put(company, this.recordsOf(company, resource, members))
  }

  // -- changes by other people --------------------------------------------------------------------------------------------

  /** Other people create records that were not sent yet: a process whose lookup is hours old must look again. */
  overtake(externalids: ReadonlyArray<readonly [company: number, resource: string, externalid: string]>): void {
    for (const [company, resource, externalid] of externalids) {
      const one = this.planned.find(
        (row) =>
          row.operation === "create" &&
          row.company === company &&
          row.resource === resource &&
          row.externalid === externalid
      )
      if (one === undefined || one.expectation.kind !== "created" || !this.luck.chance(0.3)) continue
      const body = Object.entries(JSON.parse(one.json) as object).map(([name, value]) => [name, JSON.stringify(value)])
      const members = recordOf(resource, Object.fromEntries(body) as Members)
      // Under the next id of the source: the ids of the beginning are not counted on.
      const answer = this.source.control(
        this.source.at(company),
        "POST",
        "/records",
        this.recordsOf(company, resource, members)
      )
      const id = Number(/"id":(\d+)/.exec(answer)![1])
      this.fired("U17 used by others: meanwhile")
      this.log("others", `create ${resource} ${id} as ${externalid}`)
      this.others.set(People.nameOf(company, resource, externalid), [id])
      one.expectation = { kind: "adopted", id, differing: [] }
    }
  }

  /** A process has just read a record by its id: other people change it before the answer is used. */
  afterRead({ company, path }: Read): void {
    const match = /^\/([a-z0-9]+)\/(\d+)(?:\?|$)/.exec(path)
    if (match === null || !this.isOn()) return
    this.meddleSoon(company, match[1]!, Number(match[2]), this.luck.skewed(100, 2_000_000))
  }

  /** A record was written: other people change it soon. */
  afterDone({ sending, changes }: WriteEffect): void {
    if (sending.method === "DELETE" || !this.isOn()) return
    const { id } = this.luck.pick(changes).version
    this.meddleSoon(sending.company, sending.resource, id, this.luck.skewed(1_000, 60_000_000))
  }

  private isOn(): boolean {
    const { meddleRate } = this.drawn.pushing
    return !this.stopped && meddleRate > 0 && this.luck.chance(meddleRate)
  }

  private meddleSoon(company: number, resource: string, id: number, late: number): void {
    const kind = kinds[resource]
    if (kind === undefined) return
    this.kernel.after(late, null, () => {
      if (this.stopped) return
      const before = this.meddlings.filter(
        (one) => one.company === company && one.resource === resource && one.id === id
      )
      if (before.length >= meddlingsMax) return
      const isSame = kind.ours !== undefined && this.luck.chance(0.35)
      const field = isSame ? kind.ours.field : kind.theirs.field
      const mark = `9${++this.marks}`
      const value = isSame ? text(`o${mark}`) : kind.theirs.value(mark)
      this.fired(isSame ? "U16 the same field" : "U16 another field")
      this.log("others", `change ${field} of ${resource} ${id} to ${value}`)
      this.meddlings.push({ company, resource, id, field, value, at: this.kernel.now })
      this.put(company, resource, { id: String(id), [field]: value })
    })
  }
}
