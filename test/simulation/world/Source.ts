/**
 * The source: the reference server's core under virtual time, and what it showed to whom.
 *
 * Promise: nothing of the pipeline is used here. What the source held at any time is read from its own history of
 * commits, and what it promised (`synced_through`) from the bytes of its answers.
 */
import { type Core, core } from "../../../connectors/service-v2/reference-server/Core.ts"
import { putRecords } from "../../../connectors/service-v2/reference-server/control/records.ts"
import type { Network } from "../../../connectors/service-v2/reference-server/events/Network.ts"
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import { parseExactly } from "../../../connectors/service-v2/reference-server/json.ts"
import type { Change } from "../../../connectors/service-v2/reference-server/store/Store.ts"
import type { Answer, Request } from "../../../connectors/service-v2/reference-server/http/Message.ts"
import type { Kernel } from "../kernel/Kernel.ts"

export const basePath = "/!/api/v2"
export const origin = "https://erp.simulated"

/** A version as the source committed it. */
export interface SourceVersion {
  readonly seq: number
  readonly id: string
  readonly op: Change["op"]
  /** lastchangedate in microseconds. */
  readonly stamp: number | null
  /** When anybody could see it. */
  readonly at: number
  /** JSON text, as a list shows it; of a removal, the last one. */
  readonly text: string
}

const encoder = new TextEncoder()

export class Source {
  readonly core: Core
  private readonly kernel: Kernel
  private readonly network: Network | null
  /** When each `synced_through` was told for the first time. */
  readonly told = new Map<string, number>()
  /** Called when the first page of a list of changes was made, at its very instant. */
  firstPage: (company: number, resource: string) => void = () => {}
  /** Called right before the first page of a list is made. */
  beforePage: (company: number, resource: string) => void = () => {}
  private readonly histories = new Map<string, { read: number; readonly versions: Array<SourceVersion> }>()
  readonly tokens = new Map<number, string>()

  /** Records that a read by their number does not find yet, or never can, by `keyOf`. */
  readonly hidden = new Map<string, { readonly until: number; readonly status: number }>()
  /** Records that a read by their number shows for a while as they were before the last change, by `keyOf`. */
  readonly earlier = new Map<string, { readonly until: number; readonly text: string }>()

  /** Lists that were answered with an earlier answer: when, and from when that answer is. */
  readonly staleLists: Array<{
    readonly company: number
    readonly resource: string
    readonly at: number
    readonly of: number
  }> = []

  /** `network` is the way to receivers; without one, nothing fires. */
  constructor(kernel: Kernel, seed: number, network: Network | null = null) {
    this.network = network
    this.kernel = kernel
    this.core = core({
      now: () => kernel.now,
      baseUrl: `${origin}${basePath}`,
      data: "empty",
      seed,
      ...(network === null ? {} : { network }),
      onDefect: (error) => {
        throw error
      }
    })
  }

  /** Calls the control plane; throws on an answer that is no success. */
  control(method: string, url: string, body?: unknown): string {
    const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
    const answer = this.core.control({ method, url, headers: {}, body: text === null ? null : encoder.encode(text) })
    if (answer.status >= 300) throw new Error(`${method} ${url}: ${answer.status} ${answer.body}`)
    return answer.chunks === undefined ? answer.body : [...answer.chunks].join("")
  }

  /** Writes records as people do: what is subscribed to fires, unless nobody is to hear of it. */
  put(text: string, isNoisy = true): void {
    if (this.network === null || !isNoisy) this.control("POST", "/records", text)
    else putRecords(this.core.world, parseExactly(text) as Readonly<Record<string, unknown>>)
  }

  /** Removes a record; noisily, as far as anybody listens, or without a trace. */
  remove(company: number, resource: string, id: number, isNoisy: boolean): void {
    if (this.network === null || !isNoisy) this.control("POST", "/remove", { company, resource, id })
    else {
      const { store } = this.core.world
      store.transact(() => store.remove(store.table(company, resource), id))
    }
  }

  /** Every subscription, cancelled ones included, in the order of their numbers. */
  subscriptions(): ReadonlyArray<Subscription> {
    return [...this.core.world.events["subscriptions"].values()]
  }

  token(company: number): string {
    const { token } = JSON.parse(this.control("POST", "/tokens", { company, scopes: ["*"] })) as { token: string }
    this.tokens.set(company, token)
    return token
  }

  /** Serves a request that arrived; remembers what it promised. */
  serve(request: Request): Answer {
    const answer = this.core.answer(request, null)
    if (answer.status === 200) {
      const synced = /"synced_through":"([^"]+)"/.exec(answer.body)?.[1]
      if (synced !== undefined && !this.told.has(synced)) this.told.set(synced, this.kernel.now)
    }
    return answer
  }

  /** Every version of a resource, in the order of commits. */
  history(company: number, resource: string): ReadonlyArray<SourceVersion> {
    const { world } = this.core
    const key = `${company} ${resource}`
    let known = this.histories.get(key)
    if (known === undefined) this.histories.set(key, (known = { read: 0, versions: [] }))
    const { history } = world.store
    for (; known.read < history.length; known.read++) {
      const { seq, op, version, at } = history[known.read]!
      if (version.table.company !== company || version.table.resource.path !== resource) continue
      const text = world.renderer.render(version)
      known.versions.push({ seq, op, id: String(version.id), stamp: version.stamp, at, text })
    }
    return known.versions
  }

  /** What a list shows now, cancelled records included: a JSON text each. */
  state(company: number, resource: string): ReadonlyArray<string> {
    return this.control("GET", `/state?company=${company}&resource=${resource}`)
      .split("\n")
      .filter((line) => line !== "")
  }
}
