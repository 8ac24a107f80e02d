/** Single records, the operations of resources, filters and custom fields. */
import * as Effect from "effect/Effect"
import type { Filter, Resource } from "../../../src/catalogue/Resource.ts"
import { findRecord, isObject, type JsonObject, member, Unreadable } from "../client/Envelope.ts"
import type { Parameter } from "../client/Listing.ts"
import { customFieldsName } from "../../../src/catalogue/Protection.ts"
import { differOperations, sampleSize } from "./Access.ts"
import { changesOf, epoch, checkPosition, checkRefusal } from "./Changes.ts"
import type { Context, Sample } from "./Findings.ts"
import { covering, everything, gapOf, idOf, limited, type Probe, samplesOf } from "./Probe.ts"
import { listOf, type Seen } from "./Session.ts"

/** Single records that are read. */
const recordsMax = 12

const namesOf = (record: JsonObject): ReadonlySet<string> =>
  new Set(Object.keys(record).filter((name) => name !== customFieldsName))

/** The fields in which two forms of a record differ. */
const differingFields = (one: JsonObject, other: JsonObject): ReadonlyArray<string> =>
  [...new Set([...namesOf(one), ...namesOf(other)])].filter(
    (name) => JSON.stringify(member(one, name)) !== JSON.stringify(member(other, name))
  )

const compareOne = (context: Context, { resource, list }: Sample, seen: Seen, id: string) => {
  const { findings } = context
  const record = seen.text === null ? null : findRecord({ text: seen.text, value: seen.value })
  findings.checked("record.envelope")
  if (record === null || record instanceof Unreadable) {
    findings.notReproduced.add("single records in another envelope")
    return findings.differ("record.envelope", { seen: "the body is not a record", answer: seen })
  }
  if (record.value !== seen.value) {
    findings.notReproduced.add("single records in another envelope")
    findings.differ("record.envelope", { seen: "the record is under data", answer: seen })
  }
  findings.checked("record.etag")
  if (seen.headers["etag"] === undefined) {
    findings.differ("record.etag", {
      seen: "single records have no ETag",
      answer: seen,
      variant: { name: "etag", value: false }
    })
  }
  const listed = list.records.find((one) => idOf(one) === id)!
  const fields = differingFields(listed, record.value)
  if (fields.includes("lastchangedate")) return
  findings.checked("record.same")
  if (fields.length === 0) return
  findings.notReproduced.add("single records that differ from their lists")
  findings.differ("record.same", { subject: resource.path, seen: `other values of ${fields.join(", ")}`, answer: seen })
}

export const probeRecords: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const samples = samplesOf(
      context,
      ({ resource, list }) => resource.operations.includes("R") && list.records.some((one) => idOf(one) !== null)
    )
    if (samples.length === 0) {
      for (const check of ["record.envelope", "record.same", "record.etag"])
        findings.unchecked(check, "no resource with single records has any")
    }
    for (const sample of samples.slice(0, recordsMax)) {
      const id = sample.list.records.map(idOf).find((one) => one !== null)!
      const seen = yield* session.get(`/${sample.resource.path}/${id}`)
      if (seen.status === 200) compareOne(context, sample, seen, id)
      else if (seen.status === 405 || seen.status === 501) {
        const { path, operations } = sample.resource
        differOperations(context, path, operations.join(" "), operations.filter((one) => one !== "R").join(" "), seen)
        findings.notReproduced.add("operations that an installation lacks")
      }
    }
  }).pipe(covering(context, "record.envelope", "record.same", "record.etag"))

/** Resources without single records: a request for one is refused with the allowed methods. */
export const probeOperations: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const without = samplesOf(context, ({ resource }) => !resource.operations.includes("R"))
    let open = 0
    for (const { resource } of without) {
      const seen = yield* session.get(`/${resource.path}/0`)
      findings.checked("operations")
      if (seen.status === 405) {
        if (seen.headers["allow"] === undefined) {
          findings.differ("operations", {
            subject: `${resource.path} 405`,
            seen: "405 without the header Allow",
            answer: seen
          })
          findings.notReproduced.add("405 without Allow")
        }
        continue
      }
      if (seen.status !== 200 && seen.code !== "not_found") continue
      open++
      differOperations(
        context,
        resource.path,
        resource.operations.join(" "),
        [...resource.operations, "R"].join(" "),
        seen
      )
    }
    if (without.length === 0) findings.unchecked("operations", "no resource without single records can be read")
    if (open > 0 && open === without.length && !findings.differences.has("operations ")) {
      findings.notReproduced.add("operations that only reads showed")
    }
  }).pipe(covering(context, "operations"))

interface Chosen {
  readonly filter: Filter
  /** The value as a parameter. */
  readonly value: string
}

/** A part of the text, in the other case where that cannot change its letters. */
const partOf = (text: string): string => {
  const plain = /[A-Za-z0-9][A-Za-z0-9 -]+/.exec(text)?.[0].trim()
  if (plain === undefined) return text
  const upper = plain.toUpperCase()
  return upper === plain ? plain.toLowerCase() : upper
}

/** The value as a parameter: a date is its day, in whichever form it was sent. */
const wordOf = ({ field }: Resource, name: string, value: unknown): string =>
  field.get(name)?.type._tag === "date" ? String(value).slice(0, "YYYY-MM-DD".length) : String(value)

/** Filters with a value of the record. */
const filtersOf = (resource: Resource, record: JsonObject): ReadonlyArray<Chosen> => {
  const external: ReadonlyArray<Filter> = resource.field.has("externalid")
    ? [{ field: "externalid", match: "exact" }]
    : []
  return [...resource.filters, ...external].flatMap((filter): ReadonlyArray<Chosen> => {
    const value = member(record, filter.field)
    const isWhole =
      typeof value === "string" ? value.trim() !== "" : Number.isSafeInteger(value) || typeof value === "boolean"
    if (!isWhole) return []
    return [
      { filter, value: filter.match === "partial" ? partOf(String(value)) : wordOf(resource, filter.field, value) }
    ]
  })
}

const parametersOf = (chosen: ReadonlyArray<Chosen>): ReadonlyArray<Parameter> =>
  chosen.map(({ filter, value }) => [filter.field, value])

const checkExact = ({ findings }: Context, resource: Resource, chosen: ReadonlyArray<Chosen>, seen: Seen) => {
  const list = listOf(seen, resource.path)
  for (const { filter, value } of chosen) {
    if (filter.match !== "exact") continue
    findings.checked("filters.exact")
    const others = (list?.records ?? [])
      .map((one) => wordOf(resource, filter.field, member(one, filter.field)))
      .filter((one) => one !== value)
    if (others.length === 0) continue
    const isCase = others.every((one) => one.toLowerCase() === value.toLowerCase())
    findings.differ("filters.exact", {
      subject: `${resource.path}.${filter.field}`,
      seen: isCase ? "values in another case come too" : "records with other values come too",
      answer: seen
    })
    findings.notReproduced.add("filters that are not exact")
  }
}

/** The record as the first page of its list has it now; undefined where that page lacks it. */
const readAgain = (context: Context, resource: Resource, id: string) =>
  Effect.map(
    context.session.get(`/${resource.path}`, [...everything(resource), ...limited(context, sampleSize)]),
    (seen) => listOf(seen, resource.path)?.records.find((record) => idOf(record) === id)
  )

/** Each filter alone, after all together did not find the record. */
const findWrong = (
  context: Context,
  { resource, list }: Sample,
  chosen: ReadonlyArray<Chosen>,
  record: JsonObject,
  id: string
) =>
  Effect.gen(function* () {
    const { findings, session } = context
    for (const { filter, value } of chosen) {
      const { field } = filter
      const seen = yield* session.get(`/${resource.path}`, [
        ...parametersOf([{ filter, value }]),
        ...everything(resource),
        ...limited(context, sampleSize)
      ])
      const found = seen.status === 200 ? listOf(seen, resource.path) : null
      if (found?.records.some((one) => idOf(one) === id) === true) continue
      // A long list may have the record on a later page.
      if (found !== null && found.records.length >= list.records.length && found.records.length > 0) continue
      if (found !== null) {
        const now = yield* readAgain(context, resource, id)
        if (now === undefined || differingFields(record, now).includes(field)) {
          findings.unchecked("filters", "records changed meanwhile")
          continue
        }
      }
      const text =
        found === null ? `${seen.status} ${seen.code ?? ""}`.trim() : "the record with that value does not come"
      findings.differ("filters", { subject: `${resource.path}.${field}`, seen: text, answer: seen })
      findings.notReproduced.add("filters that an installation lacks")
      findings.change({
        resource: resource.path,
        field,
        change: "filters",
        from: filter.match,
        to: found === null ? "none" : "another match",
        command: null
      })
    }
  })

const compareFilters = (context: Context, sample: Sample, hasChanges: boolean) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const { resource, list } = sample
    const best = list.records
      .map((record) => ({ record, chosen: filtersOf(resource, record) }))
      .reduce<{ readonly record: JsonObject; readonly chosen: ReadonlyArray<Chosen> } | null>(
        (most, one) => (most === null || one.chosen.length > most.chosen.length ? one : most),
        null
      )
    const chosen = best?.chosen ?? []
    const asksChanges = resource.modifiedSince && !hasChanges
    const since: ReadonlyArray<Parameter> = asksChanges ? [["modifiedsince", epoch]] : everything(resource)
    if (chosen.length === 0 && !asksChanges)
      return findings.unchecked("filters", "some resources have no values to filter by")
    const seen = yield* session.get(`/${resource.path}`, [
      ...parametersOf(chosen),
      ...since,
      ...limited(context, sampleSize)
    ])
    if (asksChanges && seen.status === 400 && seen.field === "modifiedsince")
      return checkRefusal(context, resource, seen)
    const found = seen.status === 200 ? listOf(seen, resource.path) : null
    if (asksChanges && found !== null) {
      findings.checked("modifiedsince.offered")
      checkPosition(context, seen, found, resource.path)
    }
    if (chosen.length === 0 || best === null) return found === null ? yield* gapOf(seen) : undefined
    const id = idOf(best.record)
    if (id === null) return
    if (found?.records.some((record) => idOf(record) === id) !== true)
      return yield* findWrong(context, sample, chosen, best.record, id)
    findings.checked("filters", chosen.length)
    checkExact(context, resource, chosen, seen)
  }).pipe(covering(context, "filters", "filters.exact"))

export const probeFilters: Probe = (context) => {
  const withChanges = new Set(changesOf(context).map(({ resource }) => resource.path))
  return Effect.forEach(
    samplesOf(context, ({ resource }) => resource.basis !== "configured"),
    (sample) => compareFilters(context, sample, withChanges.has(sample.resource.path)),
    { discard: true }
  )
}

export const probeCustomFields: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const [sample] = samplesOf(context, ({ list }) => list.records.length > 0)
    if (sample === undefined) return findings.unchecked("custom_fields", "no resource has records")
    const { path } = sample.resource
    const seen = yield* session.get(`/${path}`, [["include", customFieldsName], ...limited(context, 1)])
    findings.checked("custom_fields")
    const list = seen.status === 200 ? listOf(seen, path) : null
    const value = list?.records[0] === undefined ? undefined : member(list.records[0], customFieldsName)
    if (isObject(value)) return
    if (list !== null && list.records.length === 0) return findings.unchecked("custom_fields", "no record came")
    const text =
      list === null
        ? `${seen.status} ${seen.code ?? ""}`.trim()
        : `custom_fields is ${Array.isArray(value) ? "a list" : "no object"}`
    findings.differ("custom_fields", { subject: path, seen: text, answer: seen })
    findings.notReproduced.add("custom fields in another form")
  }).pipe(covering(context, "custom_fields"))
