/** A reference server in this process, and clients of it. */
import { Effect, Exit, Scope } from "effect"
import { afterAll, afterEach, assert, beforeAll } from "vitest"
import * as ReferenceServer from "../../../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { type ClientOptions, createClient, type ServiceClient } from "../../../../connectors/service-v2/sdk/index.ts"

export interface Sdk {
  readonly baseUrl: () => string
  /** Calls the control plane and returns its JSON. */
  readonly control: (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>>
  readonly token: (options?: Record<string, unknown>) => Promise<string>
  /** Sets the faults of the server until the end of the test. */
  readonly faults: (...rules: ReadonlyArray<Record<string, unknown>>) => Promise<unknown>
  /** A client of a new token; it is closed after the tests. */
  readonly client: (options?: Partial<ClientOptions>) => Promise<ServiceClient>
  /** A company of its own, with a token and a client. */
  readonly company: (
    options?: Partial<ClientOptions>
  ) => Promise<{ readonly id: number; readonly token: string; readonly client: ServiceClient }>
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
  let isFaulty = false
  afterEach(async () => {
    if (isFaulty) await control("DELETE", "/faults")
    isFaulty = false
  })
  const client: Sdk["client"] = async (options = {}) => {
    const made = createClient({ baseUrl: server.baseUrl, token: options.token ?? (await token()), ...options })
    clients.push(made)
    return made
  }
  let companies = 10
  return {
    baseUrl: () => server.baseUrl,
    control,
    token,
    faults: (...rules) => {
      isFaulty = true
      return control("POST", "/faults", { rules })
    },
    client,
    company: async (options = {}) => {
      const id = (companies += 1)
      const own = await token({ company: id })
      return { id, token: own, client: await client({ ...options, token: own }) }
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
