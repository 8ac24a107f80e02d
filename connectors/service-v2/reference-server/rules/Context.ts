/** Who writes, where and when: what every rule is given. */
import type { Store } from "../store/Store.ts"
import { printDay } from "../time.ts"
import type { Rules } from "./Rules.ts"

/** What the control plane sets for one company. */
export interface CompanySettings {
  /** Modules that are switched off. */
  readonly unlicensed: ReadonlySet<string>
  /** Records allowed, by resource. */
  readonly recordLimits: ReadonlyMap<string, number>
  /** Every day up to this one is closed; null when none is. */
  readonly closedThrough: string | null
}

export const openSettings: CompanySettings = { unlicensed: new Set(), recordLimits: new Map(), closedThrough: null }

/** The other readings of the documents that concern rules; see http/dialect.ts. */
export interface Readings {
  readonly uniqueExternalid: boolean
  readonly enableShipmentInvoice: boolean
}

export interface Context {
  readonly store: Store
  readonly company: number
  readonly settings: CompanySettings
  readonly readings: Readings
  /** What a document adds to the plain writes, by resource. */
  readonly rules: ReadonlyMap<string, Rules>
  /** The user behind the token. */
  readonly userId: number
  /** Scopes in `area:access` form. */
  readonly scopes: ReadonlySet<string>
}

/** The server's day, in UTC. */
export const today = ({ store }: Context): string => printDay(store.clock.now())
