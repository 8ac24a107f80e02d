/**
 * The way out to receivers, as a service: the server talks to it and to nothing else outside.
 *
 * Promise: whoever drives the server in process decides what receivers answer and when. A {@link Network} never throws
 * and never rejects: what goes wrong is an {@link Outcome} without a status.
 */

/** One delivery attempt on its way. */
export interface Outgoing {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Certificates, as PEM, that are trusted beside the usual ones. */
  readonly trusted: ReadonlyArray<string>
  /** Whether private, loopback and other addresses that are not public may be reached (H-22). */
  readonly allowPrivate: boolean
}

/** What came back. */
export interface Outcome {
  /** Null when no answer arrived (H-18). */
  readonly status: number | null
  /** The first 500 bytes of the answer at most (LIM-07). */
  readonly body: Uint8Array
  readonly durationms: number
  /** Why there was no answer, in words; null when there was one. */
  readonly failure: string | null
}

export interface Network {
  /** `signal` gives the attempt up. */
  readonly send: (outgoing: Outgoing, signal: AbortSignal) => Promise<Outcome>
}

/** A server that was given no way out. */
export const noNetwork: Network = {
  send: () =>
    Promise.resolve({
      status: null,
      body: new Uint8Array(),
      durationms: 0,
      failure: "this server was started without a network"
    })
}
