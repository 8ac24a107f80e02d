/** The token and its rights, and the first records of every resource. */
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { member, isObject, Unreadable } from "../client/Envelope.ts"
import { readIdentity } from "../client/Identity.ts"
import { checkRecord, noForms, type TimeForms } from "./Fields.ts"
import type { Context } from "./Findings.ts"
import { covering, everything, limited, type Probe } from "./Probe.ts"
import { isAboutLimit, listOf, type Seen } from "./Session.ts"
import { plural } from "../../../src/text/Count.ts"

/** Records of a sample. */
export const sampleSize = 100
/** Fewer timestamps say nothing about their form: a time may fall on a whole second. */
const timestampsMin = 5

export const identify: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned, session, catalogue } = context
    const seen = yield* session.get("/me")
    const identity =
      seen.status === 200 && seen.text !== null ? readIdentity({ text: seen.text, value: seen.value }, null) : null
    if (identity === null || identity instanceof Unreadable) {
      const shape = seen.status === 200 ? "no company" : `${seen.status} ${seen.code ?? ""}`.trim()
      return findings.differ("access.me", { seen: shape, answer: seen })
    }
    findings.checked("access.me")
    learned.companyId = identity.companyId
    learned.scopes = identity.scopes
    learned.features = identity.features
    const stated = isObject(seen.value) ? member(seen.value, "resources") : undefined
    if (!isObject(stated)) return findings.unchecked("operations", "/me states no operations; only reads were tried")
    let open = 0
    const named = [...catalogue.resources.values()].filter(({ path }) => Array.isArray(member(stated, path)))
    for (const { path, operations } of named) {
      const letters = (member(stated, path) as ReadonlyArray<unknown>).filter((one) => typeof one === "string")
      findings.checked("operations")
      if (letters.length === 6) open++
      if (letters.toSorted().join(" ") !== operations.toSorted().join(" ")) {
        differOperations(context, path, operations.join(" "), letters.join(" "), seen)
      }
    }
    if (named.length > 0 && open === named.length) allOpen(context, seen)
  }).pipe(covering(context, "access.me", "operations"))

export const differOperations = ({ findings }: Context, path: string, from: string, to: string, seen: Seen) => {
  findings.differ("operations", { subject: path, seen: `${to}, where the catalogue has ${from}`, answer: seen })
  findings.change({ resource: path, field: null, change: "operations", from, to, command: null })
}

/** Every resource states every operation. */
const allOpen = ({ findings }: Context, seen: Seen) =>
  findings.differ("operations", {
    seen: "every resource has all operations: L C B R U D",
    answer: seen,
    variant: { name: "allOperations", value: true }
  })

/** Reads the first records of one resource. */
const sample = (context: Context, resource: Resource) =>
  Effect.gen(function* () {
    const { findings, learned, session } = context
    const { path } = resource
    const parameters = [...limited(context, sampleSize), ...everything(resource)]
    let seen = yield* session.get(`/${path}`, parameters)
    if (!learned.isSized && isAboutLimit(seen)) {
      learned.limit = "unknown"
      seen = yield* session.get(`/${path}`, everything(resource))
    }
    if (seen.status === 403) {
      const scope = /scope="?([a-z0-9_]+:[a-z]+)/i.exec(seen.headers["www-authenticate"] ?? "")?.[1]
      const reason =
        seen.code === "feature_not_licensed"
          ? `the module ${resource.feature ?? "that it needs"} is not licensed`
          : `the token lacks the scope ${scope ?? `${resource.area}:read`}`
      learned.refused.set(reason, [...(learned.refused.get(reason) ?? []), path])
      return findings.unchecked("access.resource", reason)
    }
    const list = seen.status === 200 ? listOf(seen, path) : null
    if (list === null) {
      const shape = seen.status === 200 ? "200 without a list" : `${seen.status} ${seen.code ?? ""}`.trim()
      findings.differ("access.resource", { subject: path, seen: shape, answer: seen })
      if (seen.status === 404 || seen.status === 501) {
        findings.change({
          resource: path,
          field: null,
          change: "remove",
          from: "in the catalogue",
          to: shape,
          command: null
        })
      }
      if (seen.status !== 501) findings.notReproduced.add(`${path}: ${shape}`)
      return
    }
    findings.checked("access.resource")
    learned.samples.set(path, { resource, seen, list, hasMore: hasMore(seen, list.meta) })
  })

/** Whether the answer says that more records follow. */
export const hasMore = (seen: Pick<Seen, "headers">, meta: Readonly<Record<string, unknown>> | null): boolean =>
  meta?.["has_more"] === true ||
  (meta?.["has_more"] !== false &&
    (typeof meta?.["next_cursor"] === "string" || /rel="?next/.test(seen.headers["link"] ?? "")))

export const sampleAll: Probe = (context) =>
  Effect.forEach(
    context.catalogue.resources.values(),
    (resource) => sample(context, resource).pipe(covering(context, "access.resource")),
    { discard: true }
  )

const checkForms = ({ findings }: Context, forms: TimeForms) => {
  const { longDay, longDays, days, fractions, wholeSecond, wholeSeconds } = forms
  if (longDay !== null) {
    const isAll = days === 0
    if (!isAll) for (const keep of forms.keepLongDays) keep()
    findings.differ("date.form", {
      subject: isAll ? "" : longDay.subject,
      seen: `${longDays} of ${days + longDays} dates are timestamps`,
      answer: longDay.seen,
      variant: isAll ? { name: "dateForm", value: "timestamp" } : null
    })
  }
  if (wholeSeconds + fractions < timestampsMin) {
    return findings.unchecked("timestamp.form", `there are fewer than ${timestampsMin} timestamps`)
  }
  if (wholeSecond !== null && fractions === 0) {
    findings.differ("timestamp.form", {
      seen: `${wholeSeconds} timestamps have whole seconds only`,
      answer: wholeSecond.seen,
      value: 300,
      variant: { name: "dateForm", value: "seconds" }
    })
  }
}

/** Compares all records that were read, without a request. */
export const compareValues = (context: Context): void => {
  const { findings, learned } = context
  const forms = noForms()
  const empty = [...learned.samples.values()].filter(({ list }) => list.texts.length === 0).length
  if (empty > 0) {
    for (const check of [
      "field.unknown",
      "field.missing",
      "field.type",
      "field.length",
      "field.precision",
      "field.values"
    ]) {
      findings.unchecked(check, `${plural(empty, "resource has", "resources have")} no records`)
    }
  }
  for (const { resource, list, seen, hasMore: isPart } of learned.samples.values()) {
    let first: ReadonlyArray<string> | null = null
    for (const text of list.texts) {
      if (!text.startsWith("{")) {
        findings.differ("field.type", { subject: resource.path, seen: "a record that is no object", answer: seen })
        continue
      }
      const order = checkRecord({ resource, findings, forms, seen }, text, first)
      first ??= order
    }
    if (isPart) findings.unchecked("field.type", `of long lists only the first ${sampleSize} records were read`)
  }
  checkForms(context, forms)
}
