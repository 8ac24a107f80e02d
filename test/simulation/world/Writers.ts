/**
 * The people who write at the source.
 *
 * Promise: most ids are written once, because a second write repairs a loss and hides it. After the last write nothing
 * changes. Every odd change that a seed allows uses the server's own control plane. Changes that no cursor can bring
 * are recorded: only these may be repaired by a full scan.
 */
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Field } from "../../../src/catalogue/Field.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { type Chance, chance } from "../kernel/Chance.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import { type Final, keyOf, type WrittenValue } from "../checkers/Checker.ts"
import { family, momentOf } from "../Plan.ts"
import { instantOf } from "./Connections.ts"
import { plainField } from "./Programs.ts"
import type { Source } from "./Source.ts"
import type { Warehouse } from "./Warehouse.ts"

interface WrittenRecord {
  readonly id: number
  stamp: number
  /** Whether it is never written again. */
  readonly once: boolean
  gone: boolean
  /** The parent's id, if children are read with their parents. */
  parent: number | null
}

const words = [
  "plain",
  "with space ",
  " lead",
  "tab\there",
  "line\nbreak",
  "back\\slash",
  'quote"d',
  "it's",
  "ünïcödé",
  "漢字",
  "\\N",
  "\\.",
  "null",
  "",
  "%s;--",
  "0012",
  "😀"
]

/** Fields whose values records of other resources repeat, as the second half of a reference. */
const repeated = new Set(
  [...serviceV2.resources.values()].flatMap(({ fields }) =>
    fields.flatMap(({ reference }) =>
      reference === null || reference.by === null ? [] : [`${reference.resource}.${reference.by}`]
    )
  )
)

export class Writers extends Actor {
  private readonly chance = chance(this.drawn.seed, "writers")
  private readonly source: Source
  private readonly tables = new Map<string, Array<WrittenRecord>>()
  /** The next id: of each table where companies have equal ids, else of all. */
  private nextIds: ReadonlyMap<string, number> = new Map()
  /** Whether decimals are number tokens. */
  private readonly tokens = this.chance.chance(0.25)
  private stopped = false
  /** Ids that only a full scan can bring. */
  readonly excused = new Set<string>()
  /** Ids that were removed without an event: webhooks alone cannot bring that. */
  readonly unheard = new Set<string>()
  /** Ids whose current value cannot be landed. */
  readonly odd = new Set<string>()
  /** Ids of records that can be listed but never read. */
  readonly poison = new Set<string>()
  /** Whether a record's version went back: an operator must accept it. */
  wentBack = false
  /** Companies and resources whose checkpoint has an ignored field. */
  readonly ignoring = new Set<string>()
  /** Whether the source was restored from a backup. */
  wasRestored = false
  /** Random numbers of the classes that were added later. */
  private readonly later = chance(this.drawn.seed, "later writers")
  private readonly restoring = chance(this.drawn.seed, "restored source")
  private readonly configuring = chance(this.drawn.seed, "ignored fields")
  private readonly shown = new Set<WrittenRecord>()
  /** Random numbers for webhooks; null without them. */
  private readonly hooks = this.drawn.hooks === "off" ? null : chance(this.drawn.seed, "hidden")
  /** Ids that became visible later than the bound allows. */
  readonly overBound = new Set<string>()
  /** Random numbers for values that are recognized wherever they are stored. */
  private readonly marking = chance(this.drawn.seed, "marked values")
  private readonly marks = new Map<string, WrittenValue>()

  constructor(scene: Scene, source: Source) {
    super(scene)
    this.source = source
  }

  private table(company: number, resource: Resource): Array<WrittenRecord> {
    const key = `${company}/${resource.path}`
    let table = this.tables.get(key)
    if (table === undefined) this.tables.set(key, (table = []))
    return table
  }

  /** Creates the records that exist before anything runs, and schedules everything that will be written. */
  begin(subjects: ReadonlyArray<{ readonly company: number; readonly resource: Resource }>): void {
    const { chance, drawn, kernel } = this
    for (const { company, resource } of subjects) {
      for (let left = drawn.records; left > 0;) {
        const size = Math.min(left, drawn.on.has("S6") ? chance.integer(1, 3 * drawn.pageSize) : 1)
        this.create(company, resource, size, null)
        left -= size
      }
    }
    const bursts = chance.chance(0.5)
    const start = kernel.now
    for (let made = 0; made < drawn.writes; made++) {
      const share = bursts ? Math.floor(chance.next() * 6) / 6 + chance.next() / 40 : chance.next()
      kernel.at(start + Math.round(momentOf(drawn, share)), null, () => {
        const { company, resource } = chance.pick(subjects)
        this.write(company, resource)
      })
    }
    if (drawn.on.has("S5")) {
      const byTable = new Map(subjects.map(({ company, resource }) => [`${company}/${resource.path}`, resource]))
      this.source.beforePage = (company, path) => {
        const resource = byTable.get(`${company}/${path}`)
        if (resource === undefined || this.stopped || !chance.chance(0.25)) return
        const changeable = this.table(company, resource).filter(({ once, gone }) => !once && !gone)
        if (changeable.length === 0) return
        const one = chance.pick(changeable)
        const again = () => {
          if (!this.stopped && !one.gone) this.put(company, resource, [this.record(resource, one.id)], [one])
        }
        this.fired("S5 changed twice within a second")
        again()
        kernel.after(chance.skewed(1000, 800_000), null, again)
      }
    }
    if (drawn.on.has("B1")) {
      const byTable = new Map(subjects.map(({ company, resource }) => [`${company}/${resource.path}`, resource]))
      this.source.firstPage = (company, path) => {
        const resource = byTable.get(`${company}/${path}`)
        if (resource === undefined || !resource.modifiedSince || this.stopped || !chance.chance(0.25)) return
        this.fired("B1 record at the instant of the cursor")
        this.create(company, resource, 1, null)
      }
    }
    for (let left = drawn.later.backs; left > 0; left--) {
      kernel.at(start + Math.round(momentOf(drawn, this.later.next())), null, () => this.goBack(subjects))
    }
    drawn.later.periods.forEach(({ from, ignores }, index) => {
      const to = drawn.later.periods[index + 1]?.from ?? from
      if (!ignores) return
      for (let left = 6; left > 0; left--) {
        const share = from + this.configuring.next() * (to - from)
        kernel.at(start + Math.round(momentOf(drawn, share)), null, () => this.changeIgnored(subjects))
      }
    })
    for (let left = drawn.later.restores; left > 0; left--) {
      const { restoring } = this
      const from = restoring.next() * 0.6
      const to = from + restoring.next() * (0.9 - from)
      kernel.at(start + Math.round(momentOf(drawn, from)), null, () => {
        const restore = this.backUp(subjects)
        kernel.at(start + Math.round(momentOf(drawn, to)), null, restore)
      })
    }
    if (this.hooks !== null && drawn.on.has("W10")) {
      kernel.at(start + Math.round(this.hooks.next() * drawn.safety), null, () => {
        if (this.stopped) return
        this.fired("W10 burst")
        const { company, resource } = chance.pick(subjects)
        this.create(company, resource, this.hooks!.integer(30, 80), null)
      })
    }
    if (drawn.on.has("S15")) {
      kernel.at(start + Math.round(chance.next() * drawn.safety), null, () => {
        const { company, resource } = chance.pick(subjects)
        const all = this.table(company, resource).filter(({ gone }) => !gone)
        if (all.length === 0 || this.stopped) return
        this.fired("S15 storm")
        for (const { id } of all) this.odd.delete(keyOf(company, resource.path, String(id)))
        this.put(
          company,
          resource,
          all.map((one) => this.record(resource, one.id)),
          all
        )
      })
    }
  }

  /** The version of a record goes back: it has other values, and its stamp is older than one that was shown. */
  private goBack(subjects: ReadonlyArray<{ readonly company: number; readonly resource: Resource }>): void {
    const { later } = this
    const stamped = subjects.filter(({ resource }) => resource.modifiedSince && resource.path !== family[0])
    if (this.stopped || stamped.length === 0) return
    const { company, resource } = later.pick(stamped)
    // Only records that are written once: a newer version would be a change like any other.
    const those = this.table(company, resource).filter(({ once, gone, stamp }) => once && !gone && stamp > 0)
    if (those.length === 0) return
    const one = later.pick(those)
    const key = keyOf(company, resource.path, String(one.id))
    if (this.odd.has(key) || this.poison.has(key)) return
    const at = one.stamp - later.skewed(1_000_000, 3_600_000_000)
    this.excused.add(key)
    this.overBound.add(key)
    this.wentBack = true
    this.fired("S18 a version went back")
    this.put(company, resource, [this.record(resource, one.id, {}, later)], [one], at)
  }

  /** Changes an ignored field and nothing else: the record keeps its stamp. */
  private changeIgnored(subjects: ReadonlyArray<{ readonly company: number; readonly resource: Resource }>): void {
    const { configuring } = this
    if (this.stopped) return
    const ignoring = subjects.filter((one) => this.ignoring.has(`${one.company} ${one.resource.path}`))
    if (ignoring.length === 0) return
    const { company, resource } = configuring.pick(ignoring)
    const field = plainField(resource)
    const { store } = this.source.at(company).core.world
    const table = this.source.table(company, resource.path)
    const those = this.table(company, resource).filter(({ once, gone, stamp }) => once && !gone && stamp > 0)
    if (field === null || those.length === 0) return
    const { id } = configuring.pick(those)
    const key = keyOf(company, resource.path, String(id))
    const version = table.get(id)
    if (version === undefined || version.stamp === null || this.odd.has(key)) return
    this.fired("G1 an ignored field changed")
    this.log("source", `changes ${field.name} of ${resource.path} ${id} alone`)
    // No cursor shows it, and none has to: a process that reads the field again reads every record.
    this.overBound.add(key)
    const values = { ...version.values, [field.name]: String(configuring.integer(0, 99)) }
    const { extra, custom } = version
    store.transact(() => store.put(table, id, { values, extra, custom, verbatim: true }))
  }

  /**
   * Backs up the whole source. Returns a function that restores it. After the restore, records are as they were, with
   * their old stamps. Later records are gone, and their ids are used again. Nothing of this has an event or a new
   * stamp.
   */
  private backUp(subjects: ReadonlyArray<{ readonly company: number; readonly resource: Resource }>): () => void {
    const { nextIds } = this
    const odd = new Set(this.odd)
    const tables = subjects.map(({ company, resource }) => ({
      company,
      resource,
      versions: new Map(
        [...this.source.table(company, resource.path).all()].map((version) => [version.id, version] as const)
      ),
      written: this.table(company, resource).map((one) => ({
        one,
        stamp: one.stamp,
        gone: one.gone,
        parent: one.parent
      }))
    }))
    this.log("source", "is backed up")
    return () => {
      if (this.stopped) return
      this.fired("S14 restored")
      this.log("source", `! S14 restored, the next id is ${[...nextIds.values()].join(", ")}`)
      this.nextIds = nextIds
      this.wasRestored = true
      this.wentBack = true
      for (const { company, resource, versions, written } of tables) {
        const { store } = this.source.at(company).core.world
        const table = this.source.table(company, resource.path)
        const now = new Map([...table.all()].map((version) => [version.id, version] as const))
        const affected = [...new Set([...now.keys(), ...versions.keys()])].filter(
          (id) => now.get(id) !== versions.get(id)
        )
        store.transact(() => {
          for (const id of affected) {
            const version = versions.get(id)
            if (version === undefined) {
              this.fired("S14 a later record is gone")
              store.remove(table, id)
              continue
            }
            this.fired(now.has(id) ? "S14 a version went back" : "S14 a removed record is there again")
            const { values, extra, custom } = version
            store.put(table, id, { values, extra, custom, verbatim: true })
          }
        })
        for (const id of affected) {
          const key = keyOf(company, resource.path, String(id))
          this.excused.add(key)
          this.overBound.add(key)
          if (odd.has(key)) this.odd.add(key)
          else this.odd.delete(key)
        }
        const list = this.table(company, resource)
        for (const one of list) one.gone = true
        list.splice(0, list.length, ...written.map(({ one }) => one))
        for (const { one, stamp, gone, parent } of written) Object.assign(one, { stamp, gone, parent })
      }
    }
  }

  stop(): void {
    this.stopped = true
  }

  /** Writes a record without an event. Returns a function to call when an event reported the record. */
  writeSilently(company: number, resource: Resource): (() => void) | null {
    if (this.stopped || this.isChild(resource)) return null
    const one = this.fresh(company, resource, true)
    const key = keyOf(company, resource.path, String(one.id))
    this.shown.add(one)
    this.excused.add(key)
    this.put(company, resource, [this.record(resource, one.id)], [one], null, false)
    return () => void this.excused.delete(key)
  }

  private write(company: number, resource: Resource): void {
    if (this.stopped) return
    const { chance, drawn } = this
    const { on } = drawn
    const table = this.table(company, resource)
    const hasStamp = resource.field.has("lastchangedate")
    const changeable = table.filter(({ once, gone }) => !once && !gone)
    const roll = chance.next()
    if (changeable.length > 0 && roll < drawn.rewriteShare) {
      const one = chance.pick(changeable)
      const late = on.has("S7") && hasStamp && chance.chance(0.3) ? this.past(one.stamp) : null
      const cancel = resource.field.has("cancel") && chance.chance(0.2) ? { cancel: "true" } : {}
      return this.put(company, resource, [this.record(resource, one.id, cancel)], [one], late)
    }
    const isParent = on.has("CH") && resource.path === family[0]
    if (on.has("S11") && !isParent && changeable.length > 0 && chance.chance(0.15)) {
      const one = chance.pick(changeable)
      one.gone = true
      this.fired("S11 removed")
      this.log("source", `removes ${resource.path} ${one.id}`)
      // A process cannot rely on the event: the id stays excused.
      this.source.remove(company, resource.path, one.id, drawn.on.has("W4"))
      const key = keyOf(company, resource.path, String(one.id))
      const earlier = this.source.earlier.get(key)
      if (earlier !== undefined) this.source.earlier.set(key, { ...earlier, until: this.kernel.now })
      this.odd.delete(keyOf(company, resource.path, String(one.id)))
      if (!on.has("W4")) this.unheard.add(key)
      if (resource.modifiedSince || this.isChild(resource)) {
        this.excused.add(keyOf(company, resource.path, String(one.id)))
      }
      return
    }
    if (on.has("S11r") && chance.chance(0.2)) {
      const gone = table.filter((one) => one.gone)
      if (gone.length > 0) {
        const one = chance.pick(gone)
        one.gone = false
        this.fired("S11 came back")
        this.excused.delete(keyOf(company, resource.path, String(one.id)))
        this.unheard.delete(keyOf(company, resource.path, String(one.id)))
        return this.put(company, resource, [this.record(resource, one.id)], [one])
      }
    }
    if (on.has("S13") && chance.chance(0.15)) return this.createOdd(company, resource)
    if (on.has("S9") && hasStamp && chance.chance(0.15)) {
      const one = this.fresh(company, resource, true)
      this.fired("S9 without a stamp")
      if (resource.modifiedSince) this.excused.add(keyOf(company, resource.path, String(one.id)))
      return this.put(company, resource, [this.record(resource, one.id, { lastchangedate: "null" })], [one])
    }
    if (on.has("S7x") && hasStamp && resource.modifiedSince && chance.chance(0.1)) {
      const one = this.fresh(company, resource, true)
      const at = this.kernel.now - drawn.overlap - chance.skewed(200_000_000, 3_000_000_000)
      const record = this.record(resource, one.id)
      // The stamp of a record that the warehouse may have would go back: that is S18, which only an operator can
      // accept.
      if (this.isLater(company, resource, [one], at)) return this.put(company, resource, [record], [one])
      this.fired("S7x late beyond the bound")
      this.excused.add(keyOf(company, resource.path, String(one.id)))
      this.overBound.add(keyOf(company, resource.path, String(one.id)))
      return this.put(company, resource, [record], [one], at)
    }
    const late = on.has("S7") && hasStamp && chance.chance(0.4) ? this.past(0) : null
    this.create(
      company,
      resource,
      on.has("S6") && chance.chance(0.15) ? chance.integer(2, 2 * drawn.pageSize + 2) : 1,
      late
    )
  }

  /** A stamp in the past, within the bound and after `least`; null when there is none. */
  private past(least: number): number | null {
    const most = this.drawn.overlap * 0.8
    // Half of the stamps are mostly a little late. The others may be stamped before several cursors.
    const by = this.chance.chance(0.5) ? this.chance.skewed(1000, most) : Math.round(this.chance.next() * most)
    const stamp = this.kernel.now - by
    if (stamp <= least) return null
    this.fired("S7 late")
    return stamp
  }

  private isChild({ parent }: Resource): boolean {
    return this.drawn.on.has("CH") && parent !== null && this.drawn.resources.includes(parent.resource)
  }

  /** An existing parent; a new one when there is none. */
  private parentFor(company: number, resource: Resource): number | null {
    if (!this.isChild(resource)) return null
    const parent = serviceV2.resources.get(resource.parent!.resource)!
    const there = this.table(company, parent).filter(({ gone }) => !gone)
    if (there.length > 0 && !this.chance.chance(0.15)) return this.chance.pick(there).id
    const made = this.fresh(company, parent, false)
    this.put(company, parent, [this.record(parent, made.id)], [made])
    return made.id
  }

  /** A change of a child also changes its parent, at the same instant. */
  private touch(company: number, resource: Resource, children: ReadonlyArray<WrittenRecord>): void {
    if (!this.isChild(resource)) return
    const parent = serviceV2.resources.get(resource.parent!.resource)!
    const ids = new Set(children.map((child) => child.parent))
    const parents = this.table(company, parent).filter(({ id }) => ids.has(id))
    this.fired("CH child changed")
    // A parent with a bad value is written anew with a good one.
    for (const { id } of parents) this.odd.delete(keyOf(company, parent.path, String(id)))
    this.put(
      company,
      parent,
      parents.map(({ id }) => this.record(parent, id)),
      parents
    )
  }

  private nextId(company: number, { path }: Resource): number {
    const counted = this.drawn.later.sameNumber === null ? "" : `${company}/${path}`
    const id = this.nextIds.get(counted) ?? 1
    this.nextIds = new Map([...this.nextIds, [counted, id + 1]])
    return id
  }

  private fresh(company: number, resource: Resource, once: boolean): WrittenRecord {
    const one: WrittenRecord = {
      id: this.nextId(company, resource),
      stamp: 0,
      once,
      gone: false,
      parent: this.parentFor(company, resource)
    }
    this.table(company, resource).push(one)
    if (this.wasRestored) {
      // Its stamp is later than that of any earlier record with the id.
      const key = keyOf(company, resource.path, String(one.id))
      if (this.excused.delete(key)) this.fired("S14 an id was used again")
      this.overBound.delete(key)
    }
    return one
  }

  private create(company: number, resource: Resource, count: number, late: number | null): void {
    const made = Array.from({ length: count }, () => this.fresh(company, resource, this.chance.chance(0.7)))
    if (count > this.drawn.pageSize) this.fired("S6 tie larger than a page")
    this.put(
      company,
      resource,
      made.map(({ id }) => this.record(resource, id)),
      made,
      late === null || this.isLater(company, resource, made, late) ? null : late
    )
  }

  /** Each company has some records from the beginning. Whether new records have ids of these, changed after `at`. */
  private isLater(company: number, resource: Resource, made: ReadonlyArray<WrittenRecord>, at: number): boolean {
    const ids = new Set(made.map(({ id }) => String(id)))
    return this.source.commits(company, resource.path).some(({ id, stamp }) => ids.has(id) && (stamp ?? 0) >= at)
  }

  private createOdd(company: number, resource: Resource): void {
    // A text that no database can store: it must go to quarantine. Not in a key: records that refer to it would show it
    // too.
    const field = resource.fields.findLast(
      ({ name, type, reference, values }) =>
        name !== "externalid" &&
        name !== "vendorcode" &&
        type._tag === "string" &&
        reference === null &&
        values === null
    )
    if (field === undefined) return
    const one = this.fresh(company, resource, true)
    const key = keyOf(company, resource.path, String(one.id))
    this.fired("S13 value that does not fit")
    this.odd.add(key)
    this.put(company, resource, [this.record(resource, one.id, { [field.name]: '"no\\u0000value"' })], [one])
    if (this.chance.chance(0.6)) {
      this.kernel.after(this.chance.integer(1, 40) * 1_000_000, null, () => {
        if (this.stopped || one.gone) return
        this.fired("S13 repaired")
        this.odd.delete(key)
        this.put(company, resource, [this.record(resource, one.id)], [one])
      })
    }
  }

  private put(
    company: number,
    resource: Resource,
    records: ReadonlyArray<string>,
    written: ReadonlyArray<WrittenRecord>,
    late: number | null = null,
    isNoisy = true
  ): void {
    const at = late ?? this.kernel.now
    const isPlain = late === null && records.every((record) => !record.includes(`"lastchangedate"`))
    this.lag(company, resource, isPlain ? written : [])
    for (const one of written) one.stamp = at
    const ids = written.map(({ id }) => id).join(",")
    this.log(
      "source",
      `writes ${resource.path} ${ids}${late === null ? "" : ` late by ${((this.kernel.now - late) / 1e6).toFixed(3)} s`}`
    )
    const head = `{"company":${this.source.numberOf(company)},"resource":"${resource.path}"${late === null ? "" : `,"at":"${instantOf(late)}"`}`
    const field = this.isChild(resource) ? resource.parent!.field : null
    const complete = records.map((record, index) =>
      field === null ? record : `{"${field}":${written[index]!.parent},${record.slice(1)}`
    )
    this.hide(company, resource, written)
    this.source.put(company, `${head},"records":[${complete.join(",")}]}`, isNoisy)
    this.touch(company, resource, written)
  }

  /** Makes some new records unreadable by id for a while, and a few for ever. */
  private hide(company: number, resource: Resource, written: ReadonlyArray<WrittenRecord>): void {
    const { drawn, hooks, kernel } = this
    if (hooks === null || this.stopped) return
    for (const one of written) {
      if (this.shown.has(one)) continue
      this.shown.add(one)
      const key = keyOf(company, resource.path, String(one.id))
      if (drawn.on.has("R7") && hooks.chance(0.06)) {
        this.fired("R7 can never be read")
        this.poison.add(key)
        this.source.hidden.set(key, { until: Infinity, status: hooks.chance(0.9) ? 422 : 500 })
      } else if (drawn.on.has("W5") && drawn.overlap > 0 && hooks.chance(0.3)) {
        this.fired("W5 not there yet")
        this.source.hidden.set(key, { until: kernel.now + this.lateness(hooks), status: 404 })
      }
    }
  }

  /**
   * Shows some records for a while in their previous version, to reads by id. The event's time of change shows that
   * this is not the announced version.
   */
  private lag(company: number, resource: Resource, written: ReadonlyArray<WrittenRecord>): void {
    const { drawn, hooks, kernel } = this
    if (hooks === null || this.stopped || !drawn.on.has("W5") || drawn.overlap === 0) return
    if (!resource.field.has("lastchangedate") || drawn.on.has("Pd")) return
    for (const one of written) {
      const key = keyOf(company, resource.path, String(one.id))
      if (one.stamp === 0 || one.stamp >= kernel.now || !hooks.chance(0.8)) continue
      const before = this.source.commits(company, resource.path).findLast(({ id }) => id === String(one.id))
      if (before === undefined || before.op === "delete" || before.stamp === null) continue
      this.source.earlier.set(key, { until: kernel.now + this.lateness(hooks), text: before.text })
    }
  }

  /** How late a record may become visible: as far as the overlap reaches. Most deliveries take a few seconds. */
  private lateness(hooks: Chance): number {
    return hooks.skewed(1_000_000, Math.min(this.drawn.overlap * 0.8, 40_000_000))
  }

  /** A number or day that no other value has, and that is stored as a text with these digits. */
  private mark(resource: Resource, names: ReadonlyArray<string>, isDay: boolean): string {
    const number = this.marks.size
    const text = isDay
      ? new Date(Date.UTC(2100, 0, 1) + number * 86_400_000).toISOString().slice(0, 10)
      : String(770_000_000 + number * 11)
    this.marks.set(text, { text, resource, names })
    return text
  }

  /** The marked values that the warehouse has, each with its table. */
  async written(warehouse: Warehouse): Promise<Final["written"]> {
    if (this.marks.size === 0) return []
    const found = await warehouse.find("(?<![0-9])(77[0-9]{7}|2[1-9][0-9]{2}-[0-9]{2}-[0-9]{2})(?![0-9])")
    return found.flatMap(([table, text]) => {
      const value = this.marks.get(text)
      return value === undefined ? [] : [[table, value] as const]
    })
  }

  /** A marked value of a field, as JSON text; null where its type has none. */
  private marked(resource: Resource, { name, reference, type, values }: Field): string | null {
    if (reference !== null || values !== null || repeated.has(`${resource.path}.${name}`)) return null
    if (this.marking.chance(0.2)) return null
    switch (type._tag) {
      case "integer":
        return this.mark(resource, [name], false)
      case "decimal": {
        const numeral = `${this.mark(resource, [name], false)}${type.scale === 0 ? "" : this.marking.pick(["", ".5", ".50"].slice(0, type.scale + 1))}`
        return this.tokens ? numeral : `"${numeral}"`
      }
      case "date":
        return `"${this.mark(resource, [name], true)}"`
      case "timestamp":
        return `"${this.mark(resource, [name], true)}T08:09:10.000000Z"`
      case "string": {
        const most = type.maxLength ?? 200
        if (most < 9) return null
        return JSON.stringify(`${this.mark(resource, [name], false)} ${this.marking.pick(words)}`.slice(0, most))
      }
      default:
        return null
    }
  }

  /** Members that no catalogue states, alone and within others. */
  private unstated(resource: Resource): ReadonlyArray<string> {
    const { marking } = this
    const mark = (...names: ReadonlyArray<string>) => `"${names.at(-1)!}":"${this.mark(resource, names, false)}"`
    return [
      ...(marking.chance(0.4) ? [mark("secret_1")] : []),
      ...(marking.chance(0.3)
        ? [`"nest_1":{${mark("nest_1", "secret_2")},"plain":1.50,"list":[{${mark("nest_1", "list", "name")}}]}`]
        : []),
      ...(marking.chance(0.3) ? [`"custom_fields":{${mark("custom_fields", "secret_3")},"plain":2}`] : [])
    ]
  }

  /** A record's JSON text. */
  private record(
    resource: Resource,
    id: number,
    more: Readonly<Record<string, string>> = {},
    chance: Chance = this.chance
  ): string {
    const members = [`"id":${id}`]
    const hasRules = this.drawn.later.rules.length > 0
    for (const field of resource.fields) {
      const { name } = field
      if (name === "id" || name === "cancel" || name === "lastchangedate" || name === "entrydate") continue
      if (name in more) continue
      const value = (hasRules ? this.marked(resource, field) : null) ?? this.value(field, chance)
      if (value !== null) members.push(`"${name}":${value}`)
    }
    for (const [name, value] of Object.entries(more)) members.push(`"${name}":${value}`)
    if (hasRules) members.push(...this.unstated(resource))
    if (this.drawn.on.has("S12") && chance.chance(0.3)) {
      members.push(`"surprise_${chance.integer(1, 3)}":${chance.pick(['"x"', "1.10", "true", '{"a":[1.50]}', "null"])}`)
    }
    return `{${members.join(",")}}`
  }

  /** A value that the field can store, as JSON text; null for none. */
  private value({ type, reference, name, values }: Field, chance: Chance): string | null {
    if (reference !== null || values !== null) return null
    if (chance.chance(0.1)) return "null"
    switch (type._tag) {
      case "integer":
        return String(chance.pick([0, 1, -1, chance.integer(0, 1e6), Number.MAX_SAFE_INTEGER]))
      case "decimal": {
        const digits =
          type.scale === 0 ? "" : `.${String(chance.integer(0, 10 ** type.scale - 1)).padStart(type.scale, "0")}`
        const sign = chance.chance(0.2) ? "-" : ""
        const numeral = `${sign}${chance.pick([0, chance.integer(0, 99), 90071992547409, type.scale > 5 ? 7 : 900719925474099])}${digits}`
        // The API sends decimals as strings. A number token is unusual, and must be kept digit by digit too.
        return !this.tokens ? `"${numeral}"` : numeral
      }
      case "boolean":
        return String(chance.chance(0.5))
      case "date":
        return `"${chance.pick(["2026-11-21", "2024-02-29", "1999-12-31", "2027-01-01"])}"`
      case "timestamp":
        return `"${instantOf(this.kernel.now - chance.integer(0, 1e12))}"`
      case "string": {
        const most = type.maxLength ?? 200
        return JSON.stringify(`${chance.pick(words)}${name === "code" ? chance.integer(0, 1e9) : ""}`.slice(0, most))
      }
      case "list":
        return null
    }
  }
}
