/**
 * The page sizes that sources accept. The API documents state no maximum, so a connector finds it out and stores it here.
 *
 * Promise: a size that was stored is used by all connectors of the source, after a restart too. Without a store, each
 * connector finds it out for itself.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** What a source was found to accept. */
export interface PageSize {
  /** Records per page; null where the source accepts no size, so that none is sent. */
  readonly accepted: number | null
  /** The smallest size that it refused, shortened or answered too slowly; null where none. */
  readonly refused: number | null
  /** When a larger size was last tried, in milliseconds since 1970. */
  readonly triedAt: number
}

/** The sizes of one source. */
export interface SourcePageSizes {
  /** The size for a resource; that of the source where the resource has none of its own, and null before the first one. */
  readonly of: (resource: string) => Effect.Effect<PageSize | null>
  /**
   * Stores what was found with a resource: for the whole source, unless `isOwn` or the resource accepts less than the
   * others.
   */
  readonly store: (resource: string, size: PageSize, isOwn?: boolean) => Effect.Effect<void>
}

/** The name under which the size of the whole source is stored. */
const everyResource = ""

/** Sizes in memory. `written` is called for each change. */
export const fromMap = (
  sizes: Map<string, PageSize>,
  written: (resource: string, size: PageSize) => Effect.Effect<void> = () => Effect.void
): SourcePageSizes => ({
  of: (resource) => Effect.sync(() => sizes.get(resource) ?? sizes.get(everyResource) ?? null),
  store: (resource, size, isOwn = false) =>
    Effect.suspend(() => {
      const whole = sizes.get(everyResource)
      const isLess = whole !== undefined && (size.accepted ?? 0) < (whole.accepted ?? 0)
      const name = isOwn || isLess || sizes.has(resource) ? resource : everyResource
      sizes.set(name, size)
      return written(name, size)
    })
})

export interface PageSizesShape {
  /** The sizes of the source with this address. */
  readonly of: (address: string) => Effect.Effect<SourcePageSizes>
}

export const PageSizes = Context.Reference<PageSizesShape>("tributary/connector/PageSizes", {
  // Each call makes one memory, which all uses of its effect share.
  defaultValue: () => ({ of: () => Effect.succeed(fromMap(new Map())) })
})
