/**
 * The rules that a document adds to the plain writes, and their context.
 *
 * Promise: a resource without an entry is written as its catalogue file says. All further behaviour of a document is in
 * its one file in this folder.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { CompanyStore } from "../store/Store.ts"
import type { Version } from "../store/Table.ts"
import { printDay } from "../time.ts"
import type { Body } from "./body.ts"

/** The settings of one company by the control plane. */
export interface CompanySettings {
  /** Modules that are not licensed. */
  readonly unlicensed: ReadonlySet<string>
  /** Records allowed, by resource. */
  readonly recordLimits: ReadonlyMap<string, number>
  /** Every day up to this one is closed; null means none. */
  readonly closedThrough: string | null
}

export const openSettings: CompanySettings = { unlicensed: new Set(), recordLimits: new Map(), closedThrough: null }

/** The other readings of the documents that concern rules; see http/dialect.ts. */
export interface Readings {
  readonly uniqueExternalid: boolean
  readonly enableShipmentInvoice: boolean
}

/** The user, company, time and store of a write: the input of every rule. */
export interface Context extends CompanyStore {
  readonly settings: CompanySettings
  readonly readings: Readings
  /** The rules of each resource. */
  readonly rules: ReadonlyMap<string, Rules>
  /** The user behind the token. */
  readonly userId: number
  /** Scopes in `area:access` form. */
  readonly scopes: ReadonlySet<string>
}

/** The server's day, in UTC. */
export const today = ({ store }: CompanyStore): string => printDay(store.clock.now())

/** The result of a write. */
export interface Written {
  readonly version: Version
  /** Members that this answer adds to the record (I-05), as JSON text. */
  readonly more?: ReadonlyArray<readonly [name: string, text: string]>
  /** The status of the answer, where it differs from that of the operation. */
  readonly status?: number
}

/** The answer of an operation below a record, if it is not a record. */
export type Shown =
  /** Entries of a list, each as JSON text. */
  | { readonly kind: "entries"; readonly entries: ReadonlyArray<string> }
  /** JSON text of one object. */
  | { readonly kind: "object"; readonly text: string }
  /** A PDF document. */
  | { readonly kind: "file"; readonly name: string; readonly bytes: Promise<Uint8Array> }

/** An operation below a record. */
export interface SpecialRule {
  readonly run: (context: Context, version: Version, body: unknown) => Written | Shown
  /** The code for an id without a record; default not_found (I-14). */
  readonly unknownId?: string
  /** Throws the refusal of every call, before the record is looked up (J-02, G-07). */
  readonly refuse?: (context: Context) => void
  /** Whether it answers a file, which no batch may contain (G-07). */
  readonly isFile?: boolean
}

export interface Rules {
  /** Scopes that a create body needs in addition to that of the resource (C-12). */
  readonly scopesOf?: (input: unknown) => ReadonlyArray<string>
  readonly create?: (context: Context, resource: Resource, body: Body) => Written
  readonly update?: (context: Context, version: Version, body: Body) => Written
  readonly cancel?: (context: Context, version: Version) => Written
  /** Called after a code shown in the record changed: updates what is derived from it. */
  readonly followUp?: (context: Context, version: Version) => void
  /** The operations below a record, by the name in the path. */
  readonly specials?: Readonly<Record<string, SpecialRule>>
}
