/**
 * One attempt of a request: a complete answer, or the reason of the failure.
 *
 * Promise: an answer counts when its last byte has arrived; one that requests a pause counts by its head alone. No failure
 * text contains the token.
 */
import { gunzipSync } from "node:zlib"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import * as SourceError from "../../../src/connector/SourceError.ts"
import { ProxyFailed } from "../../../src/http/Proxies.ts"
import { type Answer, Failed, foreignAttemptsMax, requestIdOf } from "./Answer.ts"

export interface AttemptOptions {
  /** Limit for the whole answer of one attempt, its body included. */
  readonly requestTimeout: Duration.Duration
  readonly answerBytesMax: number
  readonly requestIdHeader: string | null
}

export interface AttemptContext {
  readonly client: HttpClient.HttpClient
  readonly options: AttemptOptions
  /** Replaces the token wherever the source sent it back. */
  readonly scrub: (text: string) => string
  /** Counts the bytes that arrived. */
  readonly usage: { bytes: number }
}

const detailLengthMax = 200

/** The body is larger than allowed. */
class Overflow {
  readonly _tag = "Overflow"
}

/** The network error by its code and message; never the request, which holds the token. */
const networkDetail = (error: HttpClientError) => {
  let code: string | null = null
  let remedy: string | undefined
  let text = error.reason._tag
  let cause: unknown = "cause" in error.reason ? error.reason.cause : undefined
  for (let depth = 0; depth < 4 && cause instanceof Error; depth++) {
    if (cause.message !== "") text = cause.message as typeof text
    if (cause instanceof ProxyFailed) remedy = cause.remedy
    if ("code" in cause && typeof cause.code === "string") {
      code = cause.code
      break
    }
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause
  }
  return { code, text: code === null || text.includes(code) ? text : `${code}: ${text}`, remedy }
}

/** The first line of a request. */
export interface RequestLine {
  readonly method: string
  readonly path: string
}

/** Method and path of a request, without ids and without its query. */
export const requestName = ({ method, path }: RequestLine): string =>
  `${method} ${path.split("?", 1)[0]!.replace(/\/-?\d+(?=\/|$)/g, "/{id}")}`

const readBody = (
  { options: { answerBytesMax }, usage }: AttemptContext,
  response: HttpClientResponse
): Effect.Effect<Uint8Array, HttpClientError | Overflow> => {
  const declared = Number(response.headers["content-length"] ?? "0")
  const chunks: Array<Uint8Array> = []
  let size = 0
  return Stream.runForEachArray(response.stream, (part) => {
    for (const chunk of part) {
      size += chunk.length
      usage.bytes += chunk.length
      chunks.push(chunk)
    }
    return size > answerBytesMax || declared > answerBytesMax ? Effect.fail(new Overflow()) : Effect.void
  }).pipe(
    Effect.catchIf(
      (error) => error._tag === "HttpClientError" && error.reason._tag === "EmptyBodyError",
      () => Effect.void
    ),
    Effect.map(() => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  )
}

/** Answers whose Retry-After holds whatever becomes of their body. */
const pausingStatuses: ReadonlySet<number> = new Set([429, 503])
/** How long such a body is waited for. */
const pausingBodyTimeout = Duration.seconds(5)

/** The body, or nothing where that of a pausing answer does not arrive. */
const bodyOf = (context: AttemptContext, response: HttpClientResponse) => {
  const body = readBody(context, response)
  return pausingStatuses.has(response.status)
    ? body.pipe(
        Effect.timeout(pausingBodyTimeout),
        Effect.orElseSucceed(() => new Uint8Array())
      )
    : body
}

/** An answer over the limit. A read can request less; the effect of a write is unknown, as with unreadable answers. */
const tooLarge = (bytesMax: number, isRead: boolean, requestId: string | null): Failed =>
  isRead
    ? new Failed(new SourceError.TooLarge({ bytesMax }), requestId)
    : new Failed(
        new SourceError.Malformed({ detail: `the answer is larger than ${bytesMax} bytes` }),
        requestId,
        foreignAttemptsMax
      )

const fromNetwork = (
  { options: { answerBytesMax }, scrub }: AttemptContext,
  error: HttpClientError | Overflow,
  isRead: boolean,
  requestId: string | null
): Failed => {
  if (error._tag === "Overflow") return tooLarge(answerBytesMax, isRead, requestId)
  const { code, text, remedy } = networkDetail(error)
  if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return tooLarge(answerBytesMax, isRead, requestId)
  const detail = scrub(text).slice(0, detailLengthMax)
  return new Failed(new SourceError.Unreachable({ detail, ...(remedy === undefined ? {} : { remedy }) }), requestId)
}

const encodingOf = (headers: Headers.Headers): string => (headers["content-encoding"] || "identity").toLowerCase()

const isGzip = (encoding: string): boolean => encoding === "gzip" || encoding === "x-gzip"

/**
 * The body without its compression; the failure when it is cut, damaged or larger than allowed. It blocks the process for
 * about 2 ms per MB; a thread would need more processor time.
 */
const decompress = (
  { options: { answerBytesMax } }: AttemptContext,
  { headers, status }: Pick<HttpClientResponse, "headers" | "status">,
  bytes: Uint8Array,
  isRead: boolean,
  requestId: string | null
): Uint8Array | Failed => {
  if (!isGzip(encodingOf(headers)) || bytes.length === 0) return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: answerBytesMax })
  } catch (error) {
    if (status >= 300) return bytes
    if (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
      return tooLarge(answerBytesMax, isRead, requestId)
    }
    return new Failed(new SourceError.Unreachable({ detail: "the compressed body is cut or damaged" }), requestId)
  }
}

/** A problem of the transfer, independent of the content of the body; null when there is none. */
const transferProblem = (
  { scrub }: AttemptContext,
  status: number,
  headers: Headers.Headers,
  bytes: Uint8Array
): SourceError.SourceReason | null => {
  const encoding = encodingOf(headers)
  // The status alone classifies a failure, whatever its body is.
  if (encoding !== "identity" && !isGzip(encoding) && status < 300) {
    return new SourceError.Malformed({ detail: `the body is encoded as ${scrub(encoding)}, which was not requested` })
  }
  const declared = headers["content-length"]
  if (
    declared !== undefined &&
    /^\d+$/.test(declared) &&
    Number(declared) !== bytes.length &&
    !pausingStatuses.has(status)
  ) {
    return new SourceError.Unreachable({ detail: `the body ended after ${bytes.length} of ${declared} bytes` })
  }
  return null
}

const execute = (
  context: AttemptContext,
  request: HttpClientRequest.HttpClientRequest,
  beganAt: number,
  attempts: number
): Effect.Effect<Answer | Failed> => {
  const { client, options, scrub } = context
  const { requestTimeout } = options
  let requestId: string | null = null
  return client.execute(request).pipe(
    Effect.flatMap((response) => {
      const { status, headers } = response
      const id = requestIdOf(headers, options.requestIdHeader)
      requestId = id === null ? null : scrub(id)
      return Effect.map(bodyOf(context, response), (bytes): Answer | Failed => {
        const problem = transferProblem(context, status, headers, bytes)
        if (problem !== null) return new Failed(problem, requestId)
        const body = decompress(context, response, bytes, request.method === "GET", requestId)
        return body instanceof Failed ? body : { status, headers, bytes: body, requestId, beganAt, attempts }
      })
    }),
    Effect.timeoutOrElse({
      duration: requestTimeout,
      orElse: () => Effect.succeed(new Failed(new SourceError.TimedOut({ after: requestTimeout }), requestId))
    }),
    Effect.catch((error) => Effect.succeed(fromNetwork(context, error, request.method === "GET", requestId))),
    Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
  )
}

/**
 * Sends a request once, as a span with its target and outcome, but without the query. `attempts` counts the attempts of
 * the request, this one included.
 */
export const attempt = (
  context: AttemptContext,
  { method, path }: RequestLine,
  request: HttpClientRequest.HttpClientRequest,
  beganAt: number,
  attempts: number
): Effect.Effect<Answer | Failed> =>
  execute(context, request, beganAt, attempts).pipe(
    Effect.tap((answer) =>
      Effect.annotateCurrentSpan(
        answer instanceof Failed
          ? { "error.type": answer.reason._tag }
          : {
              "http.response.status_code": answer.status,
              "http.response.body.size": answer.bytes.length,
              ...(answer.requestId === null ? {} : { "http.request.id": answer.requestId })
            }
      )
    ),
    Effect.withSpan(
      requestName({ method, path }),
      {
        kind: "client",
        attributes: {
          "http.request.method": method,
          "url.path": path.split("?", 1)[0]!,
          "http.request.resend_count": attempts - 1
        }
      },
      { captureStackTrace: false }
    )
  )
