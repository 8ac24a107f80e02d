/**
 * The journal of requests.
 *
 * Promise: it contains no token, wherever a caller may have put one; the newest 100,000 requests are kept. The bytes of
 * the newest 500 requests and answers are kept as well, up to a total of 4 MB: they may contain secrets, which
 * {@link withoutSecrets} replaces wherever they are shown.
 */
import type { ApiError } from "../ApiError.ts"
import type { Answer, Request } from "./Message.ts"

const keptMax = 100_000
/** Refused items of a batch that an entry names. */
const itemsMax = 20
const charactersMax = 300

/** Why a request, or an item of a batch, was refused. */
export interface Refusal {
  readonly code: string
  readonly field: string | null
  readonly message: string
  /** The problems that an `invalid_request` lists. */
  readonly problems: ReadonlyArray<{ readonly field: string; readonly code: string; readonly message: string }>
}

export interface RefusedItem extends Refusal {
  readonly index: number
}

/** What the processing of a request notes for its entry. */
export interface Notes {
  refusal: Refusal | null
  /** Refused items of a batch, the first ones. */
  items: ReadonlyArray<RefusedItem>
  isReplay: boolean
}

const noItems: ReadonlyArray<RefusedItem> = []

export const notes = (): Notes => ({ refusal: null, items: noItems, isReplay: false })

export interface Entry extends Readonly<Notes> {
  /** Number of the request on this server, from 1. */
  readonly seq: number
  readonly time: string
  readonly method: string
  /** Path below the base address, with the query. */
  readonly path: string
  /** Null when no answer was sent. */
  readonly status: number | null
  readonly tokenid: number | null
  readonly requestid: string
  /** The kind of fault that hit the request. */
  readonly fault: string | null
}

type Headers = Readonly<Record<string, string | undefined>>

/** A request and its answer as they were sent. Of the request's headers those that the service reads, without the token. */
export interface Exchange {
  readonly asked: { readonly headers: Headers; readonly body: Uint8Array | null }
  /** `body` is null where it is no text. */
  readonly answered: { readonly headers: Headers; readonly body: string | null }
}

export const exchangeOf = ({ headers, body }: Request, answer: Answer): Exchange => ({
  asked: {
    headers: {
      accept: headers["accept"],
      "accept-encoding": headers["accept-encoding"],
      "content-type": headers["content-type"],
      "idempotency-key": headers["idempotency-key"],
      "if-match": headers["if-match"],
      "user-agent": headers["user-agent"]
    },
    body
  },
  answered: { headers: answer.headers, body: answer.bytes === undefined ? answer.body : null }
})

/** Prefix of this server's tokens. */
export const tokenPrefix = "svct_"

export const withoutTokens = (text: string): string => text.replace(/svct_[A-Za-z0-9]+/g, `${tokenPrefix}…`)

const secretName = "(?:secret|password|passwd|pwd|token|access_token|authorization|api_?key|credential)s?"
const secretMember = new RegExp(`("${secretName}"\\s*:\\s*)(?:"(?:[^"\\\\]|\\\\.)*"?|[^\\s,}\\]]+)`, "gi")
const secretParameter = new RegExp(`([?&](?:key|sig|signature|${secretName})=)[^&#\\s"]*`, "gi")

const mayHaveSecret = /svct_|whsec_|secret|passw|pwd|token|authorization|api_?key|credential|[?&](?:key|sig)/i

/** A text without tokens, signing secrets, and values under the name of a secret. */
export const withoutSecrets = (text: string): string =>
  mayHaveSecret.test(text)
    ? withoutTokens(text)
        .replace(/whsec_[\w-]+/g, "whsec_…")
        .replace(secretMember, '$1"…"')
        .replace(secretParameter, "$1…")
    : text

const shortened = (text: string): string =>
  withoutTokens(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text)

export const refusalOf = ({ code, message, options: { field, errors = [] } }: ApiError): Refusal => ({
  code,
  field: field === undefined ? null : shortened(field),
  message: shortened(message),
  problems: errors
    .slice(0, itemsMax)
    .map((problem) => ({ ...problem, field: shortened(problem.field), message: shortened(problem.message) }))
})

/** Notes the refusal of an item of a batch. */
export const noteItem = (noted: Notes, index: number, error: ApiError): void => {
  if (noted.items.length < itemsMax) noted.items = [...noted.items, { index, ...refusalOf(error) }]
}

const exchangesMax = 500
const exchangeLengthMax = 4 * 1024 * 1024

const lengthOf = ({ asked, answered }: Exchange): number => (asked.body?.length ?? 0) + (answered.body?.length ?? 0)

export class Journal {
  private entries: Array<Entry> = []
  private seq = 0
  /** The exchange of entry n is at n modulo their number. */
  private readonly exchanges: Array<Exchange | undefined> = []
  /** The number of the oldest entry that may have an exchange. */
  private oldest = 1
  private exchangeLength = 0

  add(entry: Omit<Entry, "seq">, exchange: Exchange | null): void {
    const seq = ++this.seq
    this.entries.push({ ...entry, seq })
    if (this.entries.length > keptMax * 1.1) this.entries = this.entries.slice(-keptMax)
    const length = exchange === null ? 0 : lengthOf(exchange)
    const isKept = exchange !== null && length <= exchangeLengthMax
    if (isKept) this.exchangeLength += length
    while (this.oldest <= seq - exchangesMax || this.exchangeLength > exchangeLengthMax) this.dropOldest()
    this.exchanges[seq % exchangesMax] = isKept ? exchange : undefined
  }

  /** All entries, oldest first. */
  all(): ReadonlyArray<Entry> {
    return this.entries
  }

  find(seq: number): Entry | undefined {
    const first = this.entries[0]
    return first === undefined ? undefined : this.entries[seq - first.seq]
  }

  /** The bytes of an entry; undefined when they were too many, or are too old. */
  exchange(seq: number): Exchange | undefined {
    return seq >= this.oldest && seq <= this.seq ? this.exchanges[seq % exchangesMax] : undefined
  }

  private dropOldest(): void {
    const place = this.oldest++ % exchangesMax
    const dropped = this.exchanges[place]
    if (dropped !== undefined) this.exchangeLength -= lengthOf(dropped)
    this.exchanges[place] = undefined
  }
}
