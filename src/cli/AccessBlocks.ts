/** Resources that a token may not read, grouped by the missing scope or module. */
import type { Resource } from "../catalogue/Resource.ts"
import type { Identity } from "../connector/Connector.ts"
import { accessBlockOf } from "../sync/Sync.ts"

export interface BlockedResources {
  readonly reason: string
  readonly remedy: string
  readonly resources: ReadonlyArray<string>
}

export const blockedResources = (
  resources: Iterable<Resource>,
  identity: Identity
): ReadonlyArray<BlockedResources> => {
  const groups = new Map<string, BlockedResources & { readonly resources: Array<string> }>()
  for (const resource of resources) {
    const block = accessBlockOf(resource, identity)
    if (block === null) continue
    const group = groups.get(block.reason) ?? { reason: block.reason, remedy: block.remedy, resources: [] }
    group.resources.push(resource.path)
    groups.set(block.reason, group)
  }
  return [...groups.values()]
}
