/** Writes of one record and of a batch. */
import * as Effect from "effect/Effect"
import type { WriteAnswer, WriteRequest } from "../../../src/connector/Connector.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import { type Failed, failure } from "./Answer.ts"
import { type ClientContext, sourceOf } from "./ClientContext.ts"
import { parse, Unreadable } from "./Envelope.ts"
import { malformed } from "./Listing.ts"
import { recordPath } from "./Records.ts"
import * as WriteAnswers from "./WriteAnswers.ts"

const writeTarget = ({ resource, operation, id }: WriteRequest) => {
  if (operation === "create") return { method: "POST", path: `/${resource.path}` } as const
  if (operation === "batch") return { method: "POST", path: `/${resource.path}/batch` } as const
  if (id === null) throw new Error(`${operation} of ${resource.path} needs the record's number`)
  return { method: operation === "update" ? "PATCH" : "DELETE", path: recordPath(resource, id) } as const
}

/** Sends a write under its idempotency key, and reads the result of each record. */
export const write = (
  context: ClientContext,
  request: WriteRequest
): Effect.Effect<WriteAnswer, SourceError.SourceError> =>
  Effect.suspend(() => {
    const { method, path } = writeTarget(request)
    const headers = {
      "idempotency-key": request.idempotencyKey,
      ...(request.ifMatch === null ? {} : { "if-match": request.ifMatch })
    }
    const body = request.body === null ? null : new TextEncoder().encode(request.body)
    return context.exchange.send(
      {
        method,
        path,
        headers,
        body,
        pageParameters: null,
        ...(request.mayBeSent === undefined ? {} : { mayBeSent: request.mayBeSent })
      },
      (answer, asking): WriteAnswer | Failed => {
        const { status } = answer
        if (status < 200 || status >= 300) return failure(answer, asking)
        const source = sourceOf(method, path, answer)
        const isBatch = request.operation === "batch"
        if ((status === 204 || status === 205) && answer.bytes.length === 0 && !isBatch) {
          return { status, body: "", items: [WriteAnswers.withoutBody(request)], source }
        }
        const parsed = parse(answer.bytes)
        if (parsed instanceof Unreadable) return malformed(answer, parsed)
        const reading = { decoder: context.decoderOf(request.resource), scrub: asking.scrub }
        const read = isBatch
          ? WriteAnswers.readBatch(parsed, request, reading)
          : WriteAnswers.readOne(parsed, request, reading)
        if (read instanceof Unreadable) return malformed(answer, read)
        return { status, body: parsed.text, items: "_tag" in read ? [read] : read, source }
      }
    )
  })
