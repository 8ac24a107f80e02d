/**
 * The service that sends to receivers: the server's only outgoing connection.
 *
 * Promise: a caller in the same process decides what receivers answer and when. A {@link Network} never throws and
 * never rejects: a failure is an {@link Outcome} without a status.
 */

/** One delivery attempt to be sent. */
export interface Outgoing {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Certificates, as PEM, that are trusted in addition to the usual ones. */
  readonly trusted: ReadonlyArray<string>
  /** Whether private, loopback and other addresses that are not public may be reached (H-22). */
  readonly allowPrivate: boolean
}

/** The outcome of an attempt. */
export interface Outcome {
  /** Null when no answer arrived (H-18). */
  readonly status: number | null
  /** The first 500 bytes of the answer at most (LIM-07). */
  readonly body: Uint8Array
  readonly durationms: number
  /** The reason why no answer arrived; null when one did. */
  readonly failure: string | null
}

export interface Network {
  /** `signal` cancels the attempt. */
  readonly send: (outgoing: Outgoing, signal: AbortSignal) => Promise<Outcome>
}

/** The network of a server without outgoing connections. */
export const noNetwork: Network = {
  send: () =>
    Promise.resolve({
      status: null,
      body: new Uint8Array(),
      durationms: 0,
      failure: "this server was started without a network"
    })
}

/** The network while no receiver can be reached. */
export const unreachable: Network = {
  send: () =>
    Promise.resolve({ status: null, body: new Uint8Array(), durationms: 0, failure: "the receiver cannot be reached" })
}
