/**
 * The file of a close: what was closed, when, and the figures.
 *
 * Promise: the same content gives the same bytes. A decimal is text. {@link canonical} is the text that is signed (RFC 8785:
 * members in the order of their names, no spaces); the file shows the same content with line breaks.
 */
import * as Schema from "effect/Schema"
import { invalid } from "./CloseFailed.ts"

const Sums = Schema.Record(Schema.String, Schema.String)

const Figures = Schema.Struct({
  count: Schema.Number,
  sums: Sums,
  cancelled: Schema.NullOr(Schema.Struct({ count: Schema.Number, sums: Sums })),
  digest: Schema.String
})

const Resource = Schema.Struct({
  resource: Schema.String,
  /** The field that decides to which period a record belongs; null: it belongs to none. */
  businessDate: Schema.NullOr(Schema.String),
  /** When the last run began that made it fresh. */
  freshAt: Schema.NullOr(Schema.String),
  quarantined: Schema.Number,
  tombstones: Schema.Number,
  /** All records that exist. */
  table: Figures,
  /** Those dated until the last day of the period; null without business dates, as the next one. */
  untilEnd: Schema.NullOr(Figures),
  /** Those dated in the period. */
  period: Schema.NullOr(Figures)
})
export type ResourceClose = typeof Resource.Type

const Model = Schema.Struct({ model: Schema.String, count: Schema.Number, sums: Sums, digest: Schema.String })

const Verified = Schema.Struct({
  resource: Schema.String,
  status: Schema.Literals(["equal", "waiting", "unequal", "failed", "skipped"]),
  source: Schema.Number,
  warehouse: Schema.Number,
  missing: Schema.Number,
  surplus: Schema.Number,
  different: Schema.Number,
  notYetSynced: Schema.Number,
  unreadable: Schema.Number,
  /** Why it was not compared, or not to the end. */
  reason: Schema.NullOr(Schema.String)
})

const Invariant = Schema.Struct({
  name: Schema.String,
  rule: Schema.String,
  severity: Schema.String,
  violations: Schema.Number,
  /** Why it could not be evaluated; null where it was. */
  error: Schema.NullOr(Schema.String),
  /** The first of them. */
  rows: Schema.Array(Schema.Struct({ resource: Schema.String, id: Schema.String, detail: Schema.String }))
})

const Gap = Schema.Struct({
  resource: Schema.String,
  cause: Schema.String,
  detail: Schema.String,
  beganAt: Schema.NullOr(Schema.String),
  endedAt: Schema.NullOr(Schema.String)
})

/** The content of a close, which is signed. */
export const Content = Schema.Struct({
  schema: Schema.Literal("tributary.close/1"),
  program: Schema.Struct({ name: Schema.Literal("tributary"), version: Schema.String }),
  /** The identity of the database. */
  installation: Schema.String,
  company: Schema.Struct({ name: Schema.String, id: Schema.String }),
  period: Schema.Struct({
    month: Schema.String,
    firstDay: Schema.String,
    lastDay: Schema.String,
    timeZone: Schema.String,
    /** The first instant after it. */
    endsAt: Schema.String
  }),
  /** A draft closes nothing; the period may not have ended. */
  draft: Schema.Boolean,
  /** 1 for the first close of the period. */
  revision: Schema.Number,
  /** The SHA-256 of the file of the revision before. */
  replaces: Schema.NullOr(Schema.String),
  state: Schema.Literals(["clean", "differences"]),
  /** Why the state is not clean, one sentence each. */
  findings: Schema.Array(Schema.String),
  closedAt: Schema.String,
  /** The figures are those of the records after this change of the change feed, and of no later one. */
  position: Schema.String,
  mode: Schema.Literal("position"),
  verification: Schema.Struct({
    beganAt: Schema.String,
    endedAt: Schema.String,
    /** Null when everything was compared. */
    sample: Schema.NullOr(Schema.Struct({ records: Schema.Number, seed: Schema.Number })),
    resources: Schema.Array(Verified)
  }),
  deliveryGaps: Schema.Array(Gap),
  invariants: Schema.Array(Invariant),
  resources: Schema.Array(Resource),
  /** The day of the models is the last day of the period. */
  models: Schema.Array(Model)
})
export type Content = typeof Content.Type

export const SignatureMember = Schema.Struct({
  algorithm: Schema.Literal("Ed25519"),
  /** The public key, PEM. */
  publicKey: Schema.String,
  /** The SHA-256 of the public key (DER), in hexadecimal. */
  fingerprint: Schema.String,
  /** Base64; over {@link canonical} of the document without the member `signature`. */
  value: Schema.String
})
export type SignatureMember = typeof SignatureMember.Type

export type Document = Content & { readonly signature: SignatureMember }

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

const sorted = (value: Json): Json => {
  if (value === null || typeof value !== "object") return value
  if (Array.isArray(value)) return (value as ReadonlyArray<Json>).map(sorted)
  const members = Object.entries(value as { readonly [name: string]: Json })
  // By UTF-16 code units, as RFC 8785 orders them.
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, sorted(one)]))
}

/** The text that is signed. */
export const canonical = (content: object): string => JSON.stringify(sorted(content as Json))

/** The text of the file. */
export const print = (document: Document): string => `${JSON.stringify(sorted(document), null, 2)}\n`

const decodeContent = Schema.decodeUnknownSync(Content)
const decodeSigned = Schema.decodeUnknownSync(Schema.Struct({ signature: SignatureMember }))

/** A file: the content as it is written, which the signature covers, and its signature. */
export interface Parsed {
  readonly signed: string
  readonly signature: SignatureMember
  /** Throws where the content does not have the form of a close. */
  readonly content: () => Content
}

/** Parses the file. Throws {@link CloseFailed}. */
export const parse = (path: string, text: string): Parsed => {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const { signature } = decodeSigned(value)
    const { signature: _signature, ...content } = value
    return {
      signed: canonical(content),
      signature,
      content: () => {
        try {
          return decodeContent(content)
        } catch (error) {
          throw invalid(`${path} is no close of this version of the program: ${(error as Error).message}`)
        }
      }
    }
  } catch {
    throw invalid(`${path} is no signed close`)
  }
}
