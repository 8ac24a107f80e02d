/** A small OTLP collector. It keeps the bytes that arrive over HTTP, so that a test can search them for secrets. */
import type { IncomingHttpHeaders } from "node:http"
import { gunzipSync } from "node:zlib"
import * as Effect from "effect/Effect"
import { recording } from "./recording.ts"

interface Post {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Value {
  readonly stringValue?: string
  readonly intValue?: string | number
  readonly boolValue?: boolean
  readonly doubleValue?: number
}

interface Attribute {
  readonly key: string
  readonly value: Value
}

export interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly attributes: ReadonlyArray<Attribute>
}

interface LogRecord {
  readonly severityText: string
  readonly body: Value
  readonly traceId?: string
}

interface Resource {
  readonly attributes: ReadonlyArray<Attribute>
}

interface Traces {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }>
  }>
}

interface Logs {
  readonly resourceLogs: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeLogs: ReadonlyArray<{ readonly logRecords: ReadonlyArray<LogRecord> }>
  }>
}

/** Attributes by name, as text. */
export const attributesOf = ({
  attributes
}: {
  readonly attributes: ReadonlyArray<Attribute>
}): Readonly<Record<string, string>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]))

export const collector = Effect.gen(function* () {
  const posts: Array<Post> = []
  const { url } = yield* recording((request, bytes, response) => {
    const text = (request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes).toString("latin1")
    posts.push({ path: request.url ?? "", headers: request.headers, text })
    response.writeHead(200, { "content-type": "application/json" }).end("{}")
  })
  const bodies = <Body>(path: string) =>
    posts.filter((post) => post.path === path).map(({ text }) => JSON.parse(text) as Body)
  return {
    url,
    posts,
    spans: () =>
      bodies<Traces>("/v1/traces").flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      ),
    logs: () =>
      bodies<Logs>("/v1/logs").flatMap(({ resourceLogs }) =>
        resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
      ),
    resources: () => [
      ...bodies<Traces>("/v1/traces").flatMap(({ resourceSpans }) => resourceSpans.map(({ resource }) => resource)),
      ...bodies<Logs>("/v1/logs").flatMap(({ resourceLogs }) => resourceLogs.map(({ resource }) => resource))
    ]
  }
})
