/**
 * The journal of requests.
 *
 * Promise: it contains no token, wherever a caller may have put one; the newest 100,000 requests are kept.
 */
const keptMax = 100_000

export interface Entry {
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

/** Prefix of this server's tokens. */
export const tokenPrefix = "svct_"

export const withoutTokens = (text: string): string => text.replace(/svct_[A-Za-z0-9]+/g, `${tokenPrefix}…`)

export class Journal {
  private entries: Array<Entry> = []

  add(entry: Entry): void {
    this.entries.push(entry)
    if (this.entries.length > keptMax * 1.1) this.entries = this.entries.slice(-keptMax)
  }

  all(): ReadonlyArray<Entry> {
    return this.entries
  }
}
