/**
 * The source: the reference server's core under virtual time, and the record of what it showed.
 *
 * Promise: it uses no code of the pipeline. The records at any time are read from the source's own history of commits.
 * The promised `synced_through` is read from the bytes of its answers.
 */
import { type Core, core } from "../../../connectors/service-v2/reference-server/Core.ts"
import { putRecords, type RecordsInput } from "../../../connectors/service-v2/reference-server/control/records.ts"
import type { Network } from "../../../connectors/service-v2/reference-server/events/Network.ts"
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import { parseExactly } from "../../../connectors/service-v2/reference-server/json.ts"
import type { Change } from "../../../connectors/service-v2/reference-server/store/Store.ts"
import type { Table } from "../../../connectors/service-v2/reference-server/store/Table.ts"
import type { World } from "../../../connectors/service-v2/reference-server/World.ts"
import type { Answer, Request } from "../../../connectors/service-v2/reference-server/http/Message.ts"
import { isSelected } from "../checkers/Kept.ts"
import type { Kernel } from "../kernel/Kernel.ts"
import type { Plan } from "../Plan.ts"
import type { RulesPeriod } from "../RulesPlan.ts"

export const basePath = "/!/api/v2"

/** A server of the source, with the companies that it has. */
export interface Installation {
  readonly origin: string
  readonly core: Core
  /** The number at the source of each company, by its number in the warehouse. */
  readonly numbers: ReadonlyMap<number, number>
}

/** A version as the source committed it. */
export interface SourceVersion {
  readonly seq: number
  readonly id: string
  readonly op: Change["op"]
  /** lastchangedate in microseconds. */
  readonly stamp: number | null
  /** When it became visible. */
  readonly at: number
  /** JSON text, as a list shows it; for a removal, the last one. */
  readonly text: string
}

interface CachedHistory {
  read: number
  readonly versions: Array<SourceVersion>
  /** The versions that the warehouse keeps, with a removal where a record is no longer selected. */
  readonly selected: Array<SourceVersion>
  /** The selected records, with their latest text. */
  readonly present: Map<string, string>
}

const encoder = new TextEncoder()

export class Source {
  readonly installations: ReadonlyArray<Installation>
  private readonly kernel: Kernel
  private readonly network: Network | null
  /** When each `synced_through` was issued for the first time. */
  readonly issuedCursors = new Map<string, number>()
  /** Called at the instant at which the first page of a list of changes was created. */
  firstPage: (company: number, resource: string) => void = () => {}
  /** Called right before the first page of a list is created. */
  beforePage: (company: number, resource: string) => void = () => {}
  private readonly histories = new Map<string, CachedHistory>()
  readonly tokens = new Map<number, string>()

  /** Records that a read by id does not find yet, or never finds, by `keyOf`. */
  readonly hidden = new Map<string, { readonly until: number; readonly status: number }>()
  /** Records that a read by id shows for a while in their previous version, by `keyOf`. */
  readonly earlier = new Map<string, { readonly until: number; readonly text: string }>()

  /** Lists that were answered with an earlier answer: the time, and the time of that answer. */
  readonly staleLists: Array<{
    readonly company: number
    readonly resource: string
    readonly at: number
    readonly of: number
  }> = []

  private readonly rules: ReadonlyArray<RulesPeriod>

  /** `network` is the path to receivers. Without one, no event fires. */
  constructor(kernel: Kernel, drawn: Plan, companies: ReadonlyArray<number>, network: Network | null) {
    const { rules, sameNumber } = drawn.later
    this.rules = rules
    this.network = network
    this.kernel = kernel
    const make = (origin: string, seed: number, numbers: Installation["numbers"]): Installation => ({
      origin,
      numbers,
      core: core({
        now: () => kernel.now,
        baseUrl: `${origin}${basePath}`,
        data: "empty",
        seed,
        ...(network === null ? {} : { network }),
        onDefect: (error) => {
          throw error
        }
      })
    })
    this.installations =
      sameNumber === null
        ? [make("https://erp.simulated", drawn.seed, new Map(companies.map((company) => [company, company])))]
        : companies.map((company) =>
            make(`https://erp-${company}.simulated`, drawn.seed + company, new Map([[company, sameNumber]]))
          )
  }

  /** The installation that has a company of the warehouse. */
  at(company: number): Installation {
    return this.installations.find(({ numbers }) => numbers.has(company))!
  }

  /** The number at the source of a company of the warehouse. */
  numberOf(company: number): number {
    return this.at(company).numbers.get(company)!
  }

  /** The base address of the installation that has a company. */
  addressOf(company: number): string {
    return `${this.at(company).origin}${basePath}`
  }

  /** The records of a company. */
  table(company: number, resource: string): Table {
    const { store } = this.at(company).core.world
    return store.table(this.numberOf(company), resource)
  }

  /** The same in each installation. */
  get dialect(): World["dialect"] {
    return this.installations[0]!.core.world.dialect
  }

  /** Calls the control plane of an installation. Throws on an answer that is not a success. */
  control({ core: called }: Installation, method: string, url: string, body?: unknown): string {
    const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
    const answer = called.control({ method, url, headers: {}, body: text === null ? null : encoder.encode(text) })
    if (answer.status >= 300) throw new Error(`${method} ${url}: ${answer.status} ${answer.body}`)
    return answer.chunks === undefined ? answer.body : [...answer.chunks].join("")
  }

  /** Whether the warehouse keeps some records of the resource only. */
  private selects(resource: string): boolean {
    return this.rules.some(({ where }) => where?.resource === resource)
  }

  private isSelected(resource: string, text: string): boolean {
    return isSelected(this.rules, resource, text)
  }

  /** Writes records as people do. Fires the subscribed events, unless `isNoisy` is false. */
  put(company: number, text: string, isNoisy = true): void {
    const installation = this.at(company)
    if (this.network === null || !isNoisy) this.control(installation, "POST", "/records", text)
    else putRecords(installation.core.world, parseExactly(text) as RecordsInput)
  }

  /** Removes a record, with an event when `isNoisy`, otherwise without a trace. */
  remove(company: number, resource: string, id: number, isNoisy: boolean): void {
    const installation = this.at(company)
    if (this.network === null || !isNoisy)
      this.control(installation, "POST", "/remove", { company: this.numberOf(company), resource, id })
    else {
      const { store } = installation.core.world
      store.transact(() => store.remove(this.table(company, resource), id))
    }
  }

  /** Every subscription, cancelled ones included: of each installation, in the order of their ids. */
  subscriptions(): ReadonlyArray<Subscription> {
    return this.installations.flatMap(({ core: { world } }) => [...world.events["subscriptions"].values()])
  }

  /** The installation that has a subscription. */
  installationOf(subscription: Subscription): Installation {
    return this.installations.find(
      ({ core: { world } }) => world.events["subscriptions"].get(subscription.id) === subscription
    )!
  }

  /** The company of a subscription, by its number in the warehouse. */
  companyOf(subscription: Subscription): number {
    const { numbers } = this.installationOf(subscription)
    return [...numbers].find(([, number]) => number === subscription.owner.company)![0]
  }

  /** One delivery cycle of each installation. */
  async cycle(): Promise<void> {
    await Promise.all(this.installations.map(({ core: { world } }) => world.events.cycle()))
  }

  token(company: number): string {
    const input = { company: this.numberOf(company), scopes: ["*"] }
    const { token } = JSON.parse(this.control(this.at(company), "POST", "/tokens", input)) as { token: string }
    this.tokens.set(company, token)
    return token
  }

  /** The installation with this address. */
  installationAt(origin: string): Installation {
    return this.installations.find((one) => one.origin === origin)!
  }

  /** Serves a request that arrived, and records the `synced_through` that it promised. */
  serve(origin: string, request: Request): Answer {
    const answer = this.installationAt(origin).core.answer(request, null)
    if (answer.status === 200) {
      const synced = /"synced_through":"([^"]+)"/.exec(answer.body)?.[1]
      if (synced !== undefined && !this.issuedCursors.has(synced)) this.issuedCursors.set(synced, this.kernel.now)
    }
    return answer
  }

  /** Every version of a resource, in the order of commits. */
  commits(company: number, resource: string): ReadonlyArray<SourceVersion> {
    return this.read(company, resource).versions
  }

  /** {@link commits} for a warehouse to which a record that is not selected does not exist. */
  history(company: number, resource: string): ReadonlyArray<SourceVersion> {
    return this.read(company, resource).selected
  }

  private read(company: number, resource: string): CachedHistory {
    const { world } = this.at(company).core
    const number = this.numberOf(company)
    const key = `${company} ${resource}`
    let cached = this.histories.get(key)
    if (cached === undefined) {
      const versions: Array<SourceVersion> = []
      cached = { read: 0, versions, selected: this.selects(resource) ? [] : versions, present: new Map() }
      this.histories.set(key, cached)
    }
    const { history } = world.store
    for (; cached.read < history.length; cached.read++) {
      const { seq, op, version, at } = history[cached.read]!
      if (version.table.company !== number || version.table.resource.path !== resource) continue
      const text = world.renderer.render(version)
      const id = String(version.id)
      const one: SourceVersion = { seq, op, id, stamp: version.stamp, at, text }
      cached.versions.push(one)
      if (cached.selected === cached.versions) continue
      const before = cached.present.get(id)
      if (op !== "delete" && this.isSelected(resource, text)) {
        cached.present.set(id, text)
        cached.selected.push(one)
      } else if (before !== undefined) {
        cached.present.delete(id)
        cached.selected.push({ ...one, op: "delete", text: before })
      }
    }
    return cached
  }

  /** The records that a list shows now, cancelled ones included: one JSON text each. */
  state(company: number, resource: string): ReadonlyArray<string> {
    return this.control(this.at(company), "GET", `/state?company=${this.numberOf(company)}&resource=${resource}`)
      .split("\n")
      .filter((line) => line !== "" && this.isSelected(resource, line))
  }
}
