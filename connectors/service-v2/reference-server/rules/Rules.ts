/**
 * What a document adds to the plain writes, and the context in which it does.
 *
 * Promise: a resource without an entry is written as its catalogue file says; everything a document does beyond that
 * stands in its one file in this folder.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { CompanyStore } from "../store/Store.ts"
import type { Version } from "../store/Table.ts"
import { printDay } from "../time.ts"
import type { Body } from "./body.ts"

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

/** Who writes, where and when: what every rule is given. */
export interface Context extends CompanyStore {
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
export const today = ({ store }: CompanyStore): string => printDay(store.clock.now())

/** What a write leaves behind. */
export interface Written {
  readonly version: Version
  /** Keys that this answer carries beside the record (I-05), as JSON text. */
  readonly more?: ReadonlyArray<readonly [name: string, text: string]>
  /** The status of the answer where it is not the operation's own. */
  readonly status?: number
}

/** What an operation below a record answers when it is no record. */
export type Shown =
  /** Entries of a list, as JSON text each. */
  | { readonly kind: "entries"; readonly entries: ReadonlyArray<string> }
  /** JSON text of one object. */
  | { readonly kind: "object"; readonly text: string }
  /** A PDF document. */
  | { readonly kind: "file"; readonly name: string; readonly bytes: Promise<Uint8Array> }

/** An operation below a record. */
export interface SpecialRule {
  readonly run: (context: Context, version: Version, body: unknown) => Written | Shown
  /** The code that answers an id which is no record; not_found when not said (I-14). */
  readonly unknownId?: string
  /** Throws what refuses every call, before the record is looked for (J-02, G-07). */
  readonly refuse?: (context: Context) => void
  /** Whether it answers a file, which no batch carries (G-07). */
  readonly isFile?: boolean
}

export interface Rules {
  /** Scopes that a create body needs beside the resource's own (C-12). */
  readonly scopesOf?: (given: unknown) => ReadonlyArray<string>
  readonly create?: (context: Context, resource: Resource, body: Body) => Written
  readonly update?: (context: Context, version: Version, body: Body) => Written
  readonly cancel?: (context: Context, version: Version) => Written
  /** After a code shown in the record changed: bring what is derived from it up to date. */
  readonly followUp?: (context: Context, version: Version) => void
  /** The operations below a record, by the name in the path. */
  readonly specials?: Readonly<Record<string, SpecialRule>>
}
