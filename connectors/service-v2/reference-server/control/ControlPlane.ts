/**
 * The control plane of a server as functions: each is one call of `control.ts` over HTTP.
 *
 * Promise: a call that the server refuses rejects with its message and has no effect.
 */
import type { Resources } from "../../sdk/records/index.ts"

/** The name of a resource: its path in the API. */
export type ResourceName = keyof Resources

/** A refusal of the control plane, or no answer. */
export class ControlPlaneError extends Error {
  override readonly name = "ControlPlaneError"
  /** Null when no answer arrived. */
  readonly status: number | null
  constructor(status: number | null, message: string, cause?: unknown) {
    super(message, { cause })
    this.status = status
  }
}

export interface ResetOptions {
  readonly data?: "empty" | "demo" | "scale"
  readonly rows?: number
  readonly seed?: number
}

export interface TokenOptions {
  /** Default 1. A company is created when it is first mentioned. */
  readonly company?: number
  /** Such as `["orders:read"]`; default `["*"]`, all of them. */
  readonly scopes?: ReadonlyArray<string>
  /** The login name of the token's user. Default `api`. */
  readonly user?: string
  readonly supervisor?: boolean
  readonly active?: boolean
  /** The company of the user, where it is not the token's. */
  readonly usercompany?: number
  /** RFC 3339 in UTC; null: it does not expire. */
  readonly expires?: string | null
}

export interface ClockState {
  /** RFC 3339 in UTC. */
  readonly now: string
  /** Whether the clock stands still until it is moved. */
  readonly manual: boolean
}

export interface CompanySettings {
  /** Modules by name: false takes the licence away. */
  readonly features?: Readonly<Record<string, boolean>>
  /** The most records of a resource; null removes the limit. */
  readonly recordLimits?: Readonly<Record<string, number | null>>
  /** The last day of the closed periods, `YYYY-MM-DD`. */
  readonly closedThrough?: string | null
}

export interface LimitOptions {
  /** Null: no limit. */
  readonly requestsPerMinute?: number | null
  readonly rateScope?: "token" | "user" | "install"
  readonly testCallsPerMinute?: number
  readonly failureThreshold?: number
  readonly attemptsPerEvent?: number
  /** Seconds between two delivery cycles. */
  readonly cycleSeconds?: number
  readonly rotationHours?: number
  /** Whether deliveries may be sent to addresses such as 127.0.0.1. */
  readonly allowPrivateReceivers?: boolean
}

/** Switches for the other readings of the API's documents; `http/dialect.ts` says what each means. */
export interface DialectOptions {
  readonly itemsKey?: "data" | "results" | "items" | "records" | "resource" | "bare"
  readonly paging?: "cursor" | "page" | "offset" | "link"
  readonly pageDefault?: number
  readonly pageMax?: number
  readonly limit?: "refused" | "clamped" | "ignored" | "unknown"
  /** A seed; null is off. */
  readonly pageSizes?: number | null
  /** A seed; null is off. */
  readonly tieOrder?: number | null
  readonly syncedThrough?: boolean
  readonly modifiedSince?: "inclusive" | "exclusive"
  readonly cancelTrue?: "catalogue" | "includes" | "only"
  readonly etag?: boolean
  readonly requestIdHeader?: string | null
  readonly compression?: boolean
  readonly retryAfter?: "seconds" | "date"
  readonly batchStatus?: "integer" | "text"
  readonly uniqueExternalid?: boolean
  readonly modifiedSinceOnFour?: boolean
  readonly allOperations?: boolean
  readonly deleteUnknown?: 404 | 422
  readonly enableShipmentInvoice?: boolean
  readonly dateForm?: "mixed" | "timestamp" | "seconds"
  /** A seed; null is off. */
  readonly extraFields?: number | null
  /** A seed; null is off. */
  readonly keyOrder?: number | null
}

/** A fault, and the requests that it hits. */
export interface FaultRule {
  readonly kind: "status" | "reset" | "delay" | "truncate" | "dropResponse" | "html" | "garbage" | "slowBody"
  /** Only this method. */
  readonly method?: string
  /** A prefix of the path below the base address (`/orders`), or a glob with `*`. */
  readonly path?: string
  /** Skips this many matching requests first. */
  readonly after?: number
  /** Maximum number of uses; default unlimited. */
  readonly times?: number
  /** Fires with this probability, 0 to 1. */
  readonly rate?: number
  /** Of `status` and `html`. */
  readonly status?: number
  /** The error code of `status`. */
  readonly code?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Milliseconds of `delay`; of `slowBody` between two pieces. */
  readonly ms?: number
  /** Of `truncate` the bytes sent; of `slowBody` the bytes of a piece. */
  readonly bytes?: number
}

/** Versions of records for the store, as they are: no rules, no events. */
export interface RecordVersions {
  /** Default 1. */
  readonly company?: number
  readonly resource: ResourceName
  readonly records: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** Their time, RFC 3339 in UTC; default: the server's present. */
  readonly at?: string
}

export interface HistoryEntry<R extends ResourceName = ResourceName> {
  /** The place in the order of commits. */
  readonly seq: number
  readonly op: "insert" | "update" | "delete"
  readonly company: number
  readonly resource: R
  readonly id: number
  readonly version: number
  readonly at: string
  readonly record: Resources[R]["record"]
}

/** A request that the API received. */
export interface RequestEntry {
  readonly time: string
  readonly method: string
  /** Below the base address, with the query. */
  readonly path: string
  /** Null when no answer was sent. */
  readonly status: number | null
  readonly tokenid: number | null
  readonly requestid: string
  /** The kind of fault that hit it. */
  readonly fault: string | null
}

/** One attempt to deliver an event to a receiver. */
export interface DeliveryAttempt {
  readonly webhookid: number
  readonly eventid: string
  readonly eventtype: string
  readonly attempt: number
  readonly at: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The bytes of the body in base64. */
  readonly body: string
  readonly delivered: boolean
  readonly abandoned: boolean
  readonly responsecode: number | null
  readonly responsebody: string | null
  readonly durationms: number
  /** Why no answer arrived. */
  readonly failure: string | null
}

export interface WorldOptions {
  /** Default: `world-1` and so on. */
  readonly name?: string
  /** The name of a snapshot; default: the server as it is now. */
  readonly from?: string
}

interface WorldAddresses {
  readonly name: string
  readonly baseUrl: string
  readonly controlUrl: string
}

const lines = (text: string): ReadonlyArray<unknown> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown)

/** The control plane at an address, of a server in this process or in another one. */
export class ControlPlane {
  /** The address, for example `http://127.0.0.1:41874`. */
  readonly controlUrl: string

  constructor(controlUrl: string) {
    this.controlUrl = controlUrl.replace(/\/+$/, "")
  }

  /** Makes a call, and returns the text of its answer. Rejects with {@link ControlPlaneError}. */
  async send(method: string, path: string, body?: unknown): Promise<string> {
    const response = await fetch(`${this.controlUrl}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } })
    }).catch((error: unknown) => {
      throw new ControlPlaneError(null, `${this.controlUrl} does not answer: was the server closed?`, error)
    })
    const text = await response.text()
    if (response.ok) return text
    const { error } = JSON.parse(text) as { readonly error: string }
    throw new ControlPlaneError(response.status, `${method} ${path}: ${error}`)
  }

  /** Makes any call of the control plane whose answer is JSON. */
  async control(method: string, path: string, body?: unknown): Promise<unknown> {
    return JSON.parse(await this.send(method, path, body)) as unknown
  }

  /** Removes all records, tokens, faults and settings, and makes the records of the start or of `options`. */
  async reset(options: ResetOptions = {}): Promise<void> {
    await this.send("POST", "/reset", options)
  }

  /** Makes a token. */
  async token(options: TokenOptions = {}): Promise<string> {
    const { company = 1, scopes = ["*"] } = options
    const issued = await this.control("POST", "/tokens", { ...options, company, scopes })
    return (issued as { readonly token: string }).token
  }

  /** Revokes a token, from the next request on. */
  async revokeToken(token: string): Promise<void> {
    await this.send("POST", "/tokens/revoke", { token })
  }

  async clock(): Promise<ClockState> {
    return (await this.control("GET", "/clock")) as ClockState
  }

  /** Sets the clock, or stops it, or lets it run. */
  async setClock({ now, stopped }: { readonly now?: string; readonly stopped?: boolean }): Promise<ClockState> {
    return (await this.control("POST", "/clock", { now, manual: stopped })) as ClockState
  }

  /** Moves the clock forward. What falls due happens: deliveries, expiries, purges. */
  async advanceClock(seconds: number): Promise<ClockState> {
    return (await this.control("POST", "/clock", { advanceSeconds: seconds })) as ClockState
  }

  /** Runs a delivery cycle now, and returns its attempts. */
  async deliver(): Promise<ReadonlyArray<DeliveryAttempt>> {
    const { attempts } = (await this.control("POST", "/cycle")) as { readonly attempts: ReadonlyArray<DeliveryAttempt> }
    return attempts
  }

  /** Every attempt to deliver since the start, oldest first. */
  async deliveries(): Promise<ReadonlyArray<DeliveryAttempt>> {
    const { deliveries } = (await this.control("GET", "/deliveries")) as {
      readonly deliveries: ReadonlyArray<DeliveryAttempt>
    }
    return deliveries
  }

  /** Adds a CA, in PEM, that deliveries trust. */
  async trust(caPem: string): Promise<void> {
    await this.send("POST", "/trust", { caPem })
  }

  /** Changes licences, caps and closed periods of a company. */
  async setCompany(company: number, settings: CompanySettings): Promise<void> {
    await this.send("PUT", `/companies/${company}`, settings)
  }

  async setLimits(limits: LimitOptions): Promise<void> {
    await this.send("PUT", "/limits", limits)
  }

  async setDialect(dialect: DialectOptions): Promise<void> {
    await this.send("PUT", "/dialect", dialect)
  }

  /** Replaces the faults: the first rule that matches a request hits it. */
  async setFaults(rules: ReadonlyArray<FaultRule>, seed = 1): Promise<void> {
    await this.send("POST", "/faults", { rules, seed })
  }

  async clearFaults(): Promise<void> {
    await this.send("DELETE", "/faults")
  }

  /** Puts versions of records into the store as they are, and returns the records. */
  async putRecords({
    company = 1,
    ...versions
  }: RecordVersions): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> {
    const { records } = (await this.control("POST", "/records", { company, ...versions })) as {
      readonly records: ReadonlyArray<Readonly<Record<string, unknown>>>
    }
    return records
  }

  /** Removes a record without a trace. */
  async removeRecord(resource: ResourceName, id: number, company = 1): Promise<void> {
    await this.send("POST", "/remove", { company, resource, id })
  }

  /** The current records of a resource as a list shows them, cancelled ones too, without paging and limits. */
  async records<R extends ResourceName>(resource: R, company = 1): Promise<ReadonlyArray<Resources[R]["record"]>> {
    return lines(await this.send("GET", `/state?company=${company}&resource=${resource}`)) as ReadonlyArray<
      Resources[R]["record"]
    >
  }

  /** Every version of a resource's records in the order of commits. */
  async history<R extends ResourceName>(resource: R, company = 1): Promise<ReadonlyArray<HistoryEntry<R>>> {
    return lines(await this.send("GET", `/history?company=${company}&resource=${resource}`)) as ReadonlyArray<
      HistoryEntry<R>
    >
  }

  /** Keeps the present state under a name; returns the name. Default: `snapshot-1` and so on. */
  async saveSnapshot(name?: string): Promise<string> {
    return ((await this.control("POST", "/snapshots", { name })) as { readonly name: string }).name
  }

  /** Replaces the whole state by a snapshot. */
  async restore(name: string): Promise<void> {
    await this.send("POST", "/restore", { name })
  }

  async deleteSnapshot(name: string): Promise<void> {
    await this.send("DELETE", `/snapshots/${encodeURIComponent(name)}`)
  }

  /**
   * Makes an isolated world of the server: from a snapshot, or from the server as it is now. It shares nothing that a
   * test can change, and costs the same for any number of records.
   */
  async makeWorld(options: WorldOptions = {}): Promise<World> {
    const made = (await this.control("POST", "/worlds", options)) as WorldAddresses
    return new World(made, async () => {
      await this.send("DELETE", `/worlds/${encodeURIComponent(made.name)}`)
    })
  }

  /** The newest requests that the API received, oldest first. */
  async requests(): Promise<ReadonlyArray<RequestEntry>> {
    const { requests } = (await this.control("GET", "/requests")) as { readonly requests: ReadonlyArray<RequestEntry> }
    return requests
  }
}

/** An isolated world of a server: its own records, clock, tokens, limits and faults. */
export class World extends ControlPlane {
  readonly name: string
  /** The base address of its API. */
  readonly baseUrl: string
  /** Ends the world. */
  readonly close: () => Promise<void>

  constructor({ name, baseUrl, controlUrl }: WorldAddresses, close: () => Promise<void>) {
    super(controlUrl)
    this.name = name
    this.baseUrl = baseUrl
    this.close = close
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
