/** A reference server in this process, and clients of it. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, assert, beforeAll } from "vitest"
import * as ReferenceServer from "../../../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { type ClientOptions, createClient, type ServiceClient } from "../../../../connectors/service-v2/sdk/index.ts"

export interface Sdk {
  readonly baseUrl: () => string
  /** Calls the control plane and returns its JSON. */
  readonly control: (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>>
  readonly token: (options?: Record<string, unknown>) => Promise<string>
  /** A client of a new token; it is closed after the tests. */
  readonly client: (options?: Partial<ClientOptions>) => Promise<ServiceClient>
}

/** Starts a server before the tests of a file, and stops it afterwards. */
export const useReference = (): Sdk => {
  const scope = Scope.makeUnsafe()
  const clients: Array<ServiceClient> = []
  let server: ReferenceServer.RunningServer
  beforeAll(async () => {
    const options = { port: 0, controlPort: 0, data: "empty" } as const
    server = await Effect.runPromise(Scope.provide(ReferenceServer.start(options), scope))
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  const control: Sdk["control"] = async (method, path, body) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${server.controlUrl}${path}`, { method, ...sent })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>
  }
  const token: Sdk["token"] = async (options = {}) =>
    String((await control("POST", "/tokens", { company: 1, scopes: ["*"], ...options }))["token"])
  return {
    baseUrl: () => server.baseUrl,
    control,
    token,
    client: async (options = {}) => {
      const made = createClient({ baseUrl: server.baseUrl, token: options.token ?? (await token()), ...options })
      clients.push(made)
      return made
    }
  }
}

/** The error of a promise that must reject. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("the promise did not reject"),
    (error: unknown) => error
  )

/** The error of a call that must throw. */
export const thrownBy = (call: () => unknown): unknown => {
  try {
    call()
  } catch (error) {
    return error
  }
  return assert.fail("nothing was thrown")
}
