/** Makes a client of one token. */
import { serviceV2 } from "../catalogue/index.ts"
import { identify } from "../client/Identity.ts"
import type { ClientOptions, Me, ResourceName, ServiceClient } from "./Api.ts"
import * as ResourceOperations from "./ResourceOperations.ts"
import * as Session from "./Session.ts"
import * as Webhooks from "./Webhooks.ts"
import { wrongArgument } from "./Writes.ts"

/**
 * Makes a client of one token, and therefore of one company. It connects with the first call. Throws a
 * `ConfigurationError` for wrong options.
 */
export const createClient = (options: ClientOptions): ServiceClient => {
  const session = Session.make(options)
  const made = new Map<string, unknown>()
  const resource = (path: string): unknown => {
    const known = made.get(path)
    if (known !== undefined) return known
    const found = serviceV2.resources.get(path)
    if (found === undefined) throw wrongArgument("resource", `${path} is unknown`, "give the path of a resource")
    const client = ResourceOperations.make(session, found)
    made.set(path, client)
    return client
  }
  const me = async ({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Me> => {
    const { companyId, ...rest } = await session.run(({ exchange }) => identify(exchange, null), { signal })
    return { companyId: Number(companyId), ...rest }
  }
  const client = {
    resource: (path: ResourceName) => resource(path),
    me,
    webhooks: Webhooks.make(session, options),
    usage: session.usage,
    close: session.close,
    [Symbol.asyncDispose]: session.close
  }
  for (const path of serviceV2.resources.keys()) {
    Object.defineProperty(client, path, { enumerable: true, get: () => resource(path) })
  }
  return client as unknown as ServiceClient
}
