/**
 * What a document adds to the plain writes.
 *
 * Promise: a resource without an entry is written as its catalogue file says; everything a document does beyond that
 * stands in its one file in this folder.
 */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import type { Version } from "../store/Version.ts"
import type { Body } from "./body.ts"
import type { Context } from "./Context.ts"

/** What a write leaves behind. */
export interface Written {
  readonly version: Version
  /** Keys that this answer carries beside the record (I-05), as JSON text. */
  readonly more?: ReadonlyArray<readonly [name: string, text: string]>
  /** The status of the answer where it is not the operation's own. */
  readonly status?: number
}

export interface Rules {
  readonly create?: (context: Context, resource: Resource, body: Body) => Written
  readonly update?: (context: Context, version: Version, body: Body) => Written
  readonly cancel?: (context: Context, version: Version) => Written
  /** After a code shown in the record changed: bring what is derived from it up to date. */
  readonly followUp?: (context: Context, version: Version) => void
  /** The operations below a record, by the name in the path. */
  readonly specials?: Readonly<Record<string, (context: Context, version: Version, body: unknown) => Written>>
}
