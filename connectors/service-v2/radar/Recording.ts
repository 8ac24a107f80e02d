/**
 * The recording of a comparison: its answers by their shape, and how a reference server is made alike.
 *
 * Promise: it contains no token, no secret and no text of a record (`Redact.ts`). It is one JSON document.
 */
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { RadarReport } from "../../../src/connector/Radar.ts"
import { isObject, member } from "../client/Envelope.ts"
import { eachMember } from "../client/JsonText.ts"
import type { Context } from "./Findings.ts"
import { redactJson, redactRecord, redactText } from "./Redact.ts"
import { listOf, type Seen } from "./Session.ts"

export const format = "tributary radar recording 1"

/** Switches that are reproduced by records or by a limit instead. */
const notDialect: ReadonlySet<string> = new Set(["extraFields", "requestsPerMinute"])

/** Headers whose value is a form that the service states; others are kept by their shape. */
const statedHeaders: ReadonlySet<string> = new Set(["content-type", "content-encoding", "date", "retry-after", "allow"])

const headersOf = ({ headers }: Seen): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      statedHeaders.has(name) ? (value ?? "") : redactText(value ?? "")
    ])
  )

/** Texts of answers that are words of the API: scopes, modules, operations, codes, names of fields. */
const isWord = (name: string, text: string): boolean =>
  (["scopes", "features", "resources"].includes(name) && /^[a-z0-9_]{1,40}(?::[a-z*]+)?$|^[LCBRUD*]$/.test(text)) ||
  (["error.code", "error.field"].includes(name) && /^[a-z_][a-z0-9_.[\]]{0,60}$/.test(text)) ||
  (name === "_meta.synced_through" && /^[\d:.TZ+-]{1,40}$/.test(text)) ||
  (["_meta.limit", "_meta.page", "_meta.offset", "_meta.total", "companyid"].includes(name) && /^\d+$/.test(text))

const redactMembers = (text: string, list: string | null, records: () => string): string => {
  const parts: Array<string> = []
  eachMember(text, text.indexOf("{"), (name, from, to) => {
    const raw = text.slice(from, to)
    const isNested = isObject(JSON.parse(raw))
    const value = name === list ? records() : isNested ? redactObject(raw, name) : redactJson(raw, isWord, name)
    parts.push(`${JSON.stringify(name)}:${value}`)
  })
  return `{${parts.join(",")}}`
}

/** An object of an answer beside its records: its names stay. */
const redactObject = (raw: string, name: string): string => {
  const parts: Array<string> = []
  eachMember(raw, 0, (inner, from, to) =>
    parts.push(
      `${JSON.stringify(inner)}:${redactJson(raw.slice(from, to), isWord, name === "resources" ? name : `${name}.${inner}`)}`
    )
  )
  return `{${parts.join(",")}}`
}

const bodyOf = (resource: Resource | undefined, seen: Seen): string | null => {
  if (seen.text === null) return null
  const list = resource === undefined ? null : listOf(seen, resource.path)
  const records = () => `[${(list?.texts ?? []).map((one) => redactRecord(resource!, one)).join(",")}]`
  if (list?.key === "bare") return records()
  const isRecord =
    resource !== undefined && list === null && isObject(seen.value) && member(seen.value, "error") === undefined
  if (isRecord) return redactRecord(resource, seen.text.trim())
  return isObject(seen.value) ? redactMembers(seen.text, list?.key ?? null, records) : redactJson(seen.text)
}

/** A record whose dates are days: the reference server prints them as timestamps by its dialect. */
const withDays = ({ field }: Resource, text: string): string => {
  const parts: Array<string> = []
  eachMember(text, 0, (name, from, to) => {
    const raw = text.slice(from, to)
    const isLong = field.get(name)?.type._tag === "date" && /^"\d{4}-\d\d-\d\dT00:00:00/.test(raw)
    parts.push(`${JSON.stringify(name)}:${isLong ? `${raw.slice(0, 11)}"` : raw}`)
  })
  return `{${parts.join(",")}}`
}

/** The records with differences, as they are put into a reference server. */
const recordsOf = ({ catalogue, findings }: Context, hasLongDays: boolean) =>
  [...findings.offenders].map(([path, records]) => {
    const resource = catalogue.resources.get(path)!
    const redacted = [...records.values()].map((text) => redactRecord(resource, text))
    return { resource: path, records: hasLongDays ? redacted.map((text) => withDays(resource, text)) : redacted }
  })

const json = (value: unknown) => JSON.stringify(value)

/** The document. Records are text, so that numbers keep their digits. */
export const print = (context: Context, report: RadarReport, recordedAt: string): string => {
  const { catalogue, findings, learned, session } = context
  const variants = report.differences.flatMap(({ variant }) => variant ?? [])
  const dialect = Object.fromEntries(
    variants.filter(({ name }) => !notDialect.has(name)).map(({ name, value }) => [name, value])
  )
  const limit = variants.find(({ name }) => name === "requestsPerMinute")
  const features =
    learned.features === null
      ? {}
      : Object.fromEntries(catalogue.features.map((name) => [name, learned.features!.includes(name)]))
  const answers = session.answers.map((seen) => {
    const resource = catalogue.resources.get(seen.path.slice(1).split(/[/?]/, 1)[0]!)
    return {
      request: `GET ${seen.shown}`,
      status: seen.status,
      headers: headersOf(seen),
      body: bodyOf(resource, seen)
    }
  })
  const members = [
    `"format":${json(format)}`,
    `"api":${json(`${catalogue.name} ${catalogue.version}`)}`,
    `"recordedAt":${json(recordedAt)}`,
    `"reference":${json({
      dialect,
      limits: limit === undefined ? {} : { requestsPerMinute: limit.value },
      features,
      scopes: learned.scopes?.filter((one) => isWord("scopes", one)) ?? null,
      records: recordsOf(context, dialect["dateForm"] === "timestamp")
    })}`,
    `"notReproduced":${json([...findings.notReproduced])}`,
    `"answers":[\n${answers.map(json).join(",\n")}\n]`
  ]
  return `{\n${members.join(",\n")}\n}\n`
}
