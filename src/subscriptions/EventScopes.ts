/** What a token's scopes mean for events: the source delivers only what the token may read (EVT-02, H-03). */
import type { Catalogue } from "../catalogue/Catalogue.ts"

/** The events that are never delivered, with the scope that the token lacks; none where the source tells no scopes. */
export const undeliverableEvents = (
  { resources }: Catalogue,
  scopes: ReadonlyArray<string> | null,
  events: ReadonlyArray<string>
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const area = resources.get(event.slice(0, Math.max(0, event.lastIndexOf("."))))?.area
      if (scopes === null || area === undefined || area === "" || scopes.includes("*")) return []
      const isReadable = scopes.includes(`${area}:read`) || scopes.includes(`${area}:*`)
      return isReadable ? [] : [[event, `${area}:read`] as const]
    })
  )
