/**
 * Alert messages by e-mail.
 *
 * Promise: the outcome is unknown only if the connection is lost after the server was ready for the message. No error
 * contains the password.
 */
import { Readable } from "node:stream"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { delivered, type Outcome } from "../delivery/Sending.ts"
import { limitsOfRoutes } from "../delivery/Transport.ts"
import type { AlertMessage } from "./MessageStore.ts"
import { subjectOf, textOf } from "./MessageText.ts"
import type { Receiver } from "./Route.ts"

/** What is known of an error of the SMTP client. Its message may repeat what the server said. */
const SmtpError = Schema.Struct({
  code: Schema.optional(Schema.String),
  responseCode: Schema.optional(Schema.Int)
})
const decodeError = Schema.decodeUnknownOption(SmtpError)

/** Sends messages together, as one e-mail. */
export const send = Effect.fnUntraced(function* (
  { url, from, to, allowPlain }: Extract<Receiver, { readonly type: "email" }>,
  key: string,
  messages: ReadonlyArray<AlertMessage>
): Effect.fn.Return<Outcome> {
  // Loaded here, since most processes send no e-mail.
  const { createTransport } = yield* Effect.promise(() => import("nodemailer"))
  const transport = createTransport({
    url: Redacted.value(url),
    requireTLS: !allowPlain && new URL(Redacted.value(url)).protocol === "smtp:",
    disableFileAccess: true,
    disableUrlAccess: true
  })
  let isBegun = false
  // The client reads the text when the server has accepted the recipients.
  const text = Readable.from(
    (function* () {
      isBegun = true
      yield textOf(messages)
    })()
  )
  const failed = (error: unknown): Outcome => {
    const { code = "no code", responseCode = null } = Option.getOrElse(
      decodeError(error),
      (): typeof SmtpError.Type => ({})
    )
    return {
      status: responseCode,
      retryAfterMs: null,
      error:
        responseCode === null ? `the mail server did not answer (${code})` : `the mail server answered ${responseCode}`,
      mayHaveArrived: responseCode === null && isBegun
    }
  }
  return yield* Effect.tryPromise({
    try: (signal) =>
      transport.sendMail({
        from,
        to: [...to],
        subject: subjectOf(messages),
        messageId: `<${key}@${from.slice(from.indexOf("@") + 1)}>`,
        text,
        textEncoding: "quoted-printable",
        headers: { "Auto-Submitted": "auto-generated" },
        signal
      }),
    catch: failed
  }).pipe(
    Effect.map(() => delivered(null)),
    Effect.catch((outcome) => Effect.succeed(outcome)),
    Effect.timeoutOrElse({
      duration: limitsOfRoutes.status,
      orElse: () => Effect.sync(() => failed({ code: "ETIMEDOUT" }))
    })
  )
})
