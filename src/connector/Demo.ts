/** The parts of a connector for `tributary demo`: a reference server with data, and changes to show. */
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { ConnectorShape } from "./Connector.ts"
import type { SourceError } from "./SourceError.ts"

export interface ReferenceOptions {
  readonly port: number
  readonly controlPort: number
  readonly data: "empty" | "demo" | "scale"
  readonly rows: number | undefined
  readonly seed: number | undefined
  /** A recording of the radar: the server behaves as the recorded installation. */
  readonly like?: string | undefined
  /** Addresses on which the API and the control plane listen; default loopback. */
  readonly host?: string | undefined
  readonly controlHost?: string | undefined
  /** The token that every control call must have; default none. */
  readonly controlToken?: Redacted.Redacted | undefined
  /** TLS of both: a certificate of its own, or the files of a certificate and its key. Default: plain HTTP. */
  readonly tls?: "self-signed" | { readonly cert: string | undefined; readonly key: string | undefined } | undefined
  /** Whether tokens may be sent over plain HTTP beyond loopback. */
  readonly allowHttp?: boolean | undefined
  /** The address of the API in answers, where clients reach it by another one. */
  readonly advertiseUrl?: string | undefined
  /** Files of a snapshot: the state at the start, and where the state is saved at the end. */
  readonly load?: string | undefined
  readonly saveOnExit?: string | undefined
  /** A scenario that runs at the start. */
  readonly scenario?: string | undefined
}

/** A running reference server. */
export interface Reference {
  readonly baseUrl: string
  readonly controlUrl: string
  /** What of a recording the server cannot reproduce, a sentence each; absent without one. */
  readonly differences?: ReadonlyArray<string>
  /** The certificate that its clients trust, in PEM; null or absent unless it made its own. */
  readonly certificate?: string | null
}

/** The reference server could not be started, or its control plane did not answer as it should. */
export class ReferenceFailed extends Data.TaggedError("ReferenceFailed")<{ readonly message: string }> {}

/** A company of the demo: its name, its number and a token of the reference server. */
export interface DemoCompany {
  readonly name: string
  readonly companyId: bigint
  readonly token: Redacted.Redacted
}

/** A change of one value that fires an event. */
export interface Fired {
  /** A description of the change, for people. */
  readonly description: string
  readonly resource: string
  readonly id: string
  /** The field that changed. */
  readonly field: string
}

/** The result of an attempt to deliver an event. */
export interface Delivered {
  readonly eventId: string
  readonly eventType: string
  /** The status of the receiver's answer; null when there was none. */
  readonly status: number | null
}

/** The companies, changes and queries of the demo of this source. */
export interface Demo {
  /** Issues a token for each company of the demo data. */
  readonly companies: (reference: Reference) => Effect.Effect<ReadonlyArray<DemoCompany>, ReferenceFailed>
  /** Changes records through the API, as a person would; returns one line for each change. */
  readonly change: (connector: ConnectorShape) => Effect.Effect<ReadonlyArray<string>, SourceError | ReferenceFailed>
  /** Makes the reference server trust this certificate of receivers on this machine. */
  readonly trust: (reference: Reference, certificate: string) => Effect.Effect<void, ReferenceFailed>
  /** Changes a record through the API, so that one of the events of the default subscription fires. */
  readonly fire: (connector: ConnectorShape) => Effect.Effect<Fired, SourceError | ReferenceFailed>
  /** Delivers the events that have fired, now. */
  readonly deliver: (reference: Reference) => Effect.Effect<ReadonlyArray<Delivered>, ReferenceFailed>
  /** Every record of a resource as the server holds it, a JSON text each, in the order of ids. */
  readonly state: (
    reference: Reference,
    companyId: bigint,
    resource: string
  ) => Effect.Effect<ReadonlyArray<string>, ReferenceFailed>
  /** Sample queries of people who use an ERP, in SQL over the default datasets. */
  readonly queries: ReadonlyArray<{ readonly title: string; readonly sql: string }>
}
