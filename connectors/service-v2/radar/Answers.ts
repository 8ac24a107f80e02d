/** Headers of all answers, the request limit, and refusals that reads can provoke. */
import * as Effect from "effect/Effect"
import { isObject, member } from "../client/Envelope.ts"
import { limits } from "../catalogue/limits.ts"
import type { Context } from "./Findings.ts"
import { covering, type Probe, samplesOf } from "./Probe.ts"
import type { Seen } from "./Session.ts"
import { plural } from "../../../src/text/Count.ts"

/** A request that is refused on purpose. */
interface Refusal {
  readonly check: string
  readonly path: string
  readonly parameters?: ReadonlyArray<readonly [string, string]>
  readonly authorization?: string
  readonly status: number
  readonly code: string
  readonly field?: string
  readonly header?: string
}

const checkEnvelope = ({ findings }: Context, seen: Seen) => {
  findings.checked("error.envelope")
  const error = isObject(seen.value) ? member(seen.value, "error") : undefined
  const isRight = isObject(error) && seen.code !== null && typeof member(error, "message") === "string"
  if (isRight && /\bjson\b/i.test(seen.headers["content-type"] ?? "")) return
  const shape =
    seen.text === null ? "a body that is no JSON" : isRight ? "another content type" : "JSON of another form"
  findings.differ("error.envelope", { seen: `${seen.status} with ${shape}`, answer: seen })
  findings.notReproduced.add("refusals in another envelope")
}

const provoke = (context: Context, { check, path, parameters, authorization, status, code, field, header }: Refusal) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const seen = yield* session.get(path, parameters, authorization)
    findings.checked(check)
    if (seen.status >= 400) checkEnvelope(context, seen)
    const problems = [
      ...(seen.status === status && seen.code === code ? [] : [`${seen.status} ${seen.code ?? ""}`.trim()]),
      ...(field !== undefined && seen.status === status && seen.field !== field ? ["another field, or none"] : []),
      ...(header !== undefined && seen.headers[header] === undefined ? [`no header ${header}`] : [])
    ]
    if (problems.length === 0) return
    findings.differ(check, { seen: problems.join(", "), answer: seen })
    findings.notReproduced.add("refusals with other codes")
  }).pipe(covering(context, check))

/** An id that no record has. */
const unknownId = "9007199254740991"

export const probeRefusals: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned } = context
    const refusals: Array<Refusal> = [
      { check: "error.path", path: "/radar-unknown", status: 404, code: "not_found" },
      {
        check: "error.unauthorized",
        path: "/me",
        authorization: "Bearer",
        status: 401,
        code: "unauthorized",
        header: "www-authenticate"
      }
    ]
    const [sample] = samplesOf(context, ({ resource }) => resource.modifiedSince && resource.basis !== "configured")
    const [single] = samplesOf(context, ({ resource }) => resource.operations.includes("R"))
    if (sample === undefined) {
      for (const check of ["unknown_parameter", "invalid_enum", "invalid_type", "include", "limit"]) {
        findings.unchecked(`error.${check}`, "no list with modifiedsince can be read")
      }
    } else {
      const path = `/${sample.resource.path}`
      const bad = (check: string, name: string, value: string, code: string): Refusal => ({
        check,
        path,
        parameters: [[name, value]],
        status: 400,
        code,
        field: name
      })
      refusals.push(
        bad("error.unknown_parameter", "radar_unknown", "1", "unknown_parameter"),
        bad("error.invalid_enum", "cancel", "maybe", "invalid_enum"),
        bad("error.invalid_type", "modifiedsince", "yesterday", "invalid_type"),
        bad("error.include", "include", "radar", "invalid_enum")
      )
      if (learned.limit === "applied") refusals.push(bad("error.limit", "limit", "0", "invalid_request"))
      else findings.unchecked("error.limit", "no limit is applied")
    }
    if (single === undefined) findings.unchecked("error.not_found", "no resource with single records can be read")
    else
      refusals.push({
        check: "error.not_found",
        path: `/${single.resource.path}/${unknownId}`,
        status: 404,
        code: "not_found"
      })
    yield* Effect.forEach(refusals, (refusal) => provoke(context, refusal), { discard: true })
  })

/** Headers that differ in every answer without being an id of it. */
const ordinary =
  /^(?:date|etag|content-.*|link|retry-after|set-cookie|age|expires|last-modified|server-timing|x-runtime|cf-.*|.*ratelimit.*)$/

/** The header whose value is another one in every answer. */
const requestIdHeader = (answers: ReadonlyArray<Seen>): string | null =>
  Object.keys(answers[0]?.headers ?? {}).find((name) => {
    if (ordinary.test(name)) return false
    const values = answers.map(({ headers }) => headers[name])
    return !values.includes(undefined) && new Set(values).size === values.length
  }) ?? null

const checkRequestId = ({ findings, session }: Context) => {
  const { answers } = session
  const [first] = answers
  if (first === undefined || answers.length < 3)
    return findings.unchecked("header.request_id", "there are fewer than three answers")
  findings.checked("header.request_id", answers.length)
  if (answers.every(({ headers }) => headers["svc-request-id"] !== undefined)) return
  const name = requestIdHeader(answers)
  findings.differ("header.request_id", {
    seen: name === null ? "no header has an id of the request" : `the header ${name} has the id of a request`,
    answer: first,
    ...(name === null || !/^[a-z0-9-]{1,60}$/.test(name)
      ? {}
      : { value: name, variant: { name: "requestIdHeader", value: name } })
  })
  if (name === null) findings.notReproduced.add("answers without a request id")
}

const checkHeaders = ({ findings, session }: Context) => {
  const { answers } = session
  const undated = answers.find(({ headers }) => headers["date"] === undefined)
  findings.checked("header.date", answers.length)
  if (undated !== undefined) {
    findings.differ("header.date", { seen: "answers without Date", answer: undated })
    findings.notReproduced.add("answers without Date")
  }
  findings.checked("header.encoding", answers.length)
  const packed = answers.find(({ headers }) => (headers["content-encoding"] ?? "identity") !== "identity")
  if (packed !== undefined) {
    findings.differ("header.encoding", {
      seen: `answers are encoded as ${packed.headers["content-encoding"]}`,
      answer: packed,
      variant: { name: "compression", value: true }
    })
  }
  findings.checked("header.limit", answers.length)
  const stated = answers.find(({ headers }) => Object.keys(headers).some((name) => /ratelimit/i.test(name)))
  if (stated === undefined) return
  const names = Object.keys(stated.headers).filter((name) => /ratelimit/i.test(name))
  findings.differ("header.limit", { seen: names.join(", "), answer: stated })
  findings.notReproduced.add("headers that state the request limit")
}

/** The share of a limit that is recommended; a limit that was met is known about. */
const recommendedShare = 0.8
const recommended = (limit: number): number => {
  const share = Math.max(1, Math.floor(limit * recommendedShare))
  return share < 20 ? share : share - (share % 10)
}

const checkLimit = ({ findings, session }: Context, requests: number) => {
  const [first] = session.limited
  if (first === undefined) {
    findings.unchecked("limit.rate", `none of the requests (${requests}) was answered 429, and no more are sent`)
    return findings.unchecked("limit.retry_after", "no request was answered 429")
  }
  findings.checked("limit.rate")
  if (first.before < limits.requestsPerMinute) {
    findings.differ("limit.rate", {
      seen: `429 after ${plural(first.before, "request")} within a minute; other programs may use the token too`,
      answer: first.seen,
      value: recommended(first.before),
      variant: { name: "requestsPerMinute", value: first.before }
    })
  }
  findings.checked("limit.retry_after")
  if (/^\d+$/.test(first.retryAfter ?? "")) return
  findings.differ("limit.retry_after", {
    seen: first.retryAfter === null ? "429 without a readable Retry-After" : "Retry-After is a date",
    answer: first.seen,
    variant: first.retryAfter === null ? null : { name: "retryAfter", value: "date" }
  })
  if (first.retryAfter === null) findings.notReproduced.add("429 without Retry-After")
}

/** Compares the headers of all answers, without a request. */
export const compareAnswers = (context: Context, requests: number): void => {
  checkRequestId(context)
  checkHeaders(context)
  checkLimit(context, requests)
}
