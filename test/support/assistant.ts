/** Assistants in tests: the official client of the Model Context Protocol, over standard input and output and over HTTP. */
import { fileURLToPath } from "node:url"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import * as Effect from "effect/Effect"

const launcher = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url))

export interface Answered {
  /** The structured content; undefined for a failure. */
  readonly data: Record<string, unknown> | undefined
  readonly answer: Record<string, unknown> | undefined
  readonly isError: boolean
  /** The whole answer as text. */
  readonly text: string
}

export interface Assistant {
  readonly client: Client
  /** The process of the server; null over HTTP. */
  readonly pid: number | null
  readonly call: (tool: string, args: Record<string, unknown>) => Promise<Answered>
}

const assistantOf = (client: Client, pid: number | null): Assistant => ({
  client,
  pid,
  call: async (name, args) => {
    const result = await client.callTool({ name, arguments: args })
    const answer = result.structuredContent as Record<string, unknown> | undefined
    const [first] = result.content as ReadonlyArray<{ readonly text: string }>
    return {
      data: answer?.["data"] as Record<string, unknown> | undefined,
      answer,
      isError: result.isError === true,
      text: first?.text ?? ""
    }
  }
})

/** Starts `tributary mcp` and initializes a session; both end with the scope. */
export const overStdio = (cwd: string, env: Readonly<Record<string, string>>, args: ReadonlyArray<string> = []) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [launcher, "mcp", ...args],
        cwd,
        env: { ...env },
        stderr: "ignore"
      })
      const client = new Client({ name: "test", version: "1.0.0" })
      await client.connect(transport)
      return assistantOf(client, transport.pid)
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

/** Initializes a session at an address. */
export const overHttp = (url: string, headers: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
      const client = new Client({ name: "test", version: "1.0.0" })
      await client.connect(transport)
      return { ...assistantOf(client, null), end: () => transport.terminateSession() }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )
