/**
 * A reader of the change feed: it stores its position, and has the records that the feed has shown.
 *
 * Promise: it uses what any reader uses, the statements of the feed. Where its position is lost, it begins again.
 */
import type { Resource } from "../../../src/catalogue/Resource.ts"
import * as ChangeFeed from "../../../src/changes/ChangeFeed.ts"
import type { Fed } from "../checkers/Checker.ts"
import type { Warehouse } from "./Warehouse.ts"

/** Changes per call: few, so that calls end within batches. */
const changesPerCall = 7

const lostCodes = /^TB00[12]$/
const viewDropped = "TB003"

export class FeedReader {
  private readonly warehouse: Warehouse
  /** The records of each table (`company/resource`), by id: the version and the record's JSON. */
  private readonly known = new Map<string, Map<string, string>>()
  private position = ChangeFeed.beginning
  /** Whether a view was dropped, so that changes wait. */
  private isBlocked = false
  /** How often the position was lost. */
  restarts = 0

  constructor(warehouse: Warehouse) {
    this.warehouse = warehouse
  }

  /** Reads to the end. Returns a sentence where positions are not as promised. */
  async read(): Promise<string | null> {
    this.isBlocked = false
    await this.warehouse.ask(ChangeFeed.orderStatement.text)
    for (;;) {
      const changes = await this.next()
      if (changes === null) {
        this.restarts++
        this.known.clear()
        this.position = ChangeFeed.beginning
        continue
      }
      if (changes.length === 0) return null
      for (const change of changes) {
        const next = ChangeFeed.parse(change["resume"]!)!
        if (next.number !== this.position.number + 1n)
          return `position ${next.number} follows ${this.position.number} in the feed`
        this.position = next
        const table = `${change["companyId"]}/${change["resource"]}`
        if (!this.known.has(table)) this.known.set(table, new Map())
        const records = this.known.get(table)!
        const { id, op, after } = change as { readonly id: string; readonly op: string; readonly after: string }
        if (op === "truncate") records.clear()
        else if (op === "delete") records.delete(id)
        else if (op !== "missing") records.set(id, `${change["version"]} ${after}`)
      }
    }
  }

  /** The next changes; null where the position is lost, none where a view is dropped. */
  private async next() {
    const { number, token } = this.position
    if (token !== null) {
      const [found] = await this.warehouse.ask(ChangeFeed.tokenStatement.text, [number])
      if (number > BigInt(found!["newest"]!) || (found!["token"] !== null && found!["token"] !== token)) return null
    }
    try {
      return await this.warehouse.ask(ChangeFeed.readStatement.text, [number, changesPerCall, null, null])
    } catch (error) {
      const code = String((error as { readonly code?: unknown }).code)
      if (lostCodes.test(code)) return null
      if (code !== viewDropped) throw error
      this.isBlocked = true
      return []
    }
  }

  /** The position that a query as of it names; null at the beginning, and while changes wait. */
  get place(): string | null {
    return this.isBlocked || this.position.token === null ? null : `position ${ChangeFeed.textOf(this.position)}`
  }

  /** What the feed has shown of a table, beside what the table has. */
  async compare(company: number, resource: Resource): Promise<Fed> {
    const { rows, isDropped, isFed } = await this.warehouse.feedRows(company, resource)
    const known = this.known.get(`${company}/${resource.path}`) ?? new Map<string, string>()
    const shown = new Map([...known].map(([id, record]) => [id, this.warehouse.record(resource, record)] as const))
    return { rows, isFed, isBlocked: this.isBlocked || isDropped, shown, restarts: this.restarts }
  }
}
