/** Events that a token may not read: the source does not deliver them. */
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Subscriptions } from "../connector/Subscriptions.ts"

/** Undeliverable events with the missing scope; empty where the source does not report scopes. */
export const undeliverableEvents = (
  { resources }: Catalogue,
  { resourceOf }: Pick<Subscriptions, "resourceOf">,
  scopes: ReadonlyArray<string> | null,
  events: ReadonlyArray<string>
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const resource = resources.get(resourceOf(event) ?? "")
      if (scopes === null || resource === undefined) return []
      const scope = resource.traits.missingScope(scopes, resource.area, "read")
      return scope === null ? [] : [[event, scope] as const]
    })
  )
