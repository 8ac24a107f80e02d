/**
 * The command `npm run conformance:proxy`: the wire tests through a validating proxy that knows only the OpenAPI
 * document.
 *
 *   npm run conformance:proxy            checked by Stoplight Prism (from the npm registry)
 *   npm run conformance:proxy -- --own   checked by test/support/contract.ts
 *   … -- lists payments                  only the test files whose names contain one of these
 *
 * A proxy that rewrites messages would test the proxy: Prism parses bodies and writes them anew, so malformed JSON,
 * numbers and keys do not arrive as they were sent. The suite therefore talks to a recorder that passes every byte on
 * to the server and back. Then the recorder shows the same exchange to the checker, whose upstream replays the recorded
 * answer. The suite provokes violations of requests on purpose. Violations of answers are bugs of the server or of its
 * document, and make the run fail.
 */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { createServer, request as httpRequest } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { contract } from "../support/contract.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const node = join(root, "node_modules/.bin/node")
const isOwn = process.argv.includes("--own")
const chosen = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))

interface Exchange {
  readonly method: string
  /** Below the base address. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly status: number
  readonly answerHeaders: Readonly<Record<string, string>>
  readonly answer: Buffer
}

interface Violation {
  readonly side: "request" | "response"
  readonly where: string
  readonly message: string
}

type Checker = (exchange: Exchange) => Promise<ReadonlyArray<Violation>>

const children: Array<ChildProcess> = []
const start = (command: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = process.env): ChildProcess => {
  const child = spawn(command, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"], detached: true })
  children.push(child)
  return child
}
const end = () => {
  for (const { pid } of children) {
    try {
      if (pid !== undefined) process.kill(-pid, "SIGKILL")
    } catch {
      // It has ended already.
    }
  }
}

const bytesOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const plain = (headers: IncomingMessage["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)])
  )

/** Headers that belong to one connection. */
const passing = new Set([
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "expect",
  "upgrade"
])
const carried = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !passing.has(name)))

interface HttpReply {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Buffer
}

const send = (
  base: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: Buffer
): Promise<HttpReply> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base)
    const length = body.length > 0 ? { "content-length": String(body.length) } : {}
    const request = httpRequest({ hostname, port, method, path, headers: { ...headers, ...length } }, (response) => {
      bytesOf(response).then(
        (replyBody) => resolve({ status: response.statusCode ?? 0, headers: plain(response.headers), body: replyBody }),
        reject
      )
    })
    request.on("error", reject)
    request.end(body)
  })

const listening = async (server: ReturnType<typeof createServer>): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Prism in front of a replay of the recorded answer. */
const prism = async (document: Record<string, unknown>, basePath: string): Promise<Checker> => {
  let current: Exchange | null = null
  const replay = createServer((request, response) => {
    request.resume()
    if (current === null) {
      response.writeHead(500).end()
      return
    }
    response.writeHead(current.status, carried(current.answerHeaders)).end(current.answer)
  })
  const upstream = await listening(replay)
  const folder = mkdtempSync(join(tmpdir(), "tributary-prism-"))
  const file = join(folder, "openapi.json")
  writeFileSync(file, JSON.stringify({ ...document, servers: [{ url: `${upstream}${basePath}` }] }))
  const port = 20_000 + (process.pid % 20_000)
  const args = ["-y", "@stoplight/prism-cli@5", "proxy", file, `${upstream}${basePath}`, "--port", String(port)]
  const child = start("npx", [...args, "--host", "127.0.0.1"], { ...process.env, FORCE_COLOR: "0" })
  const lines = createInterface({ input: child.stdout! })
  await new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => {
      if (line.includes("Prism is listening")) resolve()
    })
    child.once("exit", (code) => reject(new Error(`Prism ended with ${code}`)))
  })
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  let turn: Promise<unknown> = Promise.resolve()
  const ask = async (exchange: Exchange): Promise<ReadonlyArray<Violation>> => {
    current = exchange
    const { method, url, headers, body } = exchange
    const { headers: proxyHeaders } = await send(`http://127.0.0.1:${port}`, method, url, carried(headers), body)
    const violations = proxyHeaders["sl-violations"]
    // Prism reacts to an upstream's 501 with an answer of its own, so the recorded answer cannot be checked.
    if (violations === undefined || exchange.status === 501) return []
    const listed = JSON.parse(violations) as ReadonlyArray<{ location?: ReadonlyArray<string>; message: string }>
    return listed.map(({ location = [], message }) => ({
      side: location[0] === "response" ? "response" : "request",
      where: location.slice(1).join("."),
      message
    }))
  }
  return (exchange) => {
    const done = turn.then(() => ask(exchange))
    turn = done.catch(() => {})
    return done
  }
}

const own = (document: Record<string, unknown>): Checker => {
  const { answerProblems, requestProblems } = contract(document)
  return async ({ method, url, headers, body, status, answerHeaders, answer }) => {
    const text = answer.toString("utf8")
    const answerMessages =
      method === "HEAD" ? [] : answerProblems({ method, url }, { status, headers: answerHeaders, text })
    const requestMessages = requestProblems({
      method,
      url,
      headers,
      text: body.length === 0 ? null : body.toString("utf8")
    })
    return [
      ...answerMessages.map((message): Violation => ({ side: "response", where: "", message })),
      ...requestMessages.map((message): Violation => ({ side: "request", where: "", message }))
    ]
  }
}

const main = async () => {
  const launched = start(node, [
    "src/cli/launch.js",
    "reference-server",
    "--port",
    "0",
    "--control-port",
    "0",
    "--data",
    "empty"
  ])
  const ready = await new Promise<{ baseUrl: string; controlUrl: string }>((resolve) => {
    createInterface({ input: launched.stdout! }).once("line", (line) => resolve(JSON.parse(line) as never))
  })
  const { pathname: basePath } = new URL(ready.baseUrl)
  const document = JSON.parse(
    (await send(ready.baseUrl, "GET", `${basePath}/openapi.json`, {}, Buffer.alloc(0))).body.toString("utf8")
  ) as Record<string, unknown>
  const check = isOwn ? own(document) : await prism(document, basePath)

  const counts = { exchanges: 0, putIn: 0, request: 0, response: 0, outside: 0, unchecked: 0 }
  const kinds = new Map<string, { count: number; example: string }>()
  const checks: Array<Promise<void>> = []
  // The control plane enables other dialects and faults of the server, which the document does not describe.
  let isPlain = true
  const checkExchange = async (exchange: Exchange) => {
    counts.exchanges++
    let violations: ReadonlyArray<Violation> = []
    try {
      violations = await check(exchange)
    } catch (error) {
      counts.unchecked++
      if (process.env["PROXY_DEBUG"] !== undefined) process.stderr.write(`unchecked: ${String(error)}\n`)
      return
    }
    if (violations.some(({ side }) => side === "request")) counts.request++
    const answers = violations.filter(({ side }) => side === "response")
    const wrong = answers.filter((violation) => !isPutIn(exchange, violation))
    if (answers.length > wrong.length) counts.putIn++
    if (wrong.length > 0) counts.response++
    for (const { where, message } of wrong) {
      const path = exchange.url.split("?")[0]!.replace(/\d+/g, "{id}")
      const key = `${exchange.method} ${path} ${exchange.status}: ${where} ${message}`.slice(0, 300)
      const kind = kinds.get(key)
      if (kind === undefined) {
        kinds.set(key, {
          count: 1,
          example: `${exchange.url.slice(0, 200)} → ${exchange.answer.toString("utf8").slice(0, 400)}`
        })
      } else kind.count++
    }
  }

  let oddRecords = 0
  const putIn: Array<string> = []
  /** Whether a test inserted the bad value without checks, to see it in an answer. */
  const isPutIn = ({ answer }: Exchange, { where, message }: Violation): boolean => {
    const place = where === "" ? (/^(?:body)?(\/\S+)/.exec(message)?.[1] ?? "") : where.replace(/^body/, "")
    let value: unknown = JSON.parse(answer.toString("utf8"))
    for (const part of place.split(/[./]/).filter((one) => one !== ""))
      value = (value as Record<string, unknown> | null)?.[part]
    const text = JSON.stringify(value)
    return text !== undefined && text.length > 2 && putIn.some((body) => body.includes(text))
  }

  const recorder = createServer((message, response) => {
    const pass = async () => {
      const body = await bytesOf(message)
      const method = message.method ?? "GET"
      const url = message.url ?? "/"
      const headers = plain(message.headers)
      const wasPlain = isPlain
      const reply = await send(ready.baseUrl, method, url, { ...headers, host: new URL(ready.baseUrl).host }, body)
      response.writeHead(reply.status, reply.headers).end(reply.body)
      const inside = url.startsWith(`${basePath}/`) ? url.slice(basePath.length) : null
      if (inside === null || !wasPlain || !isPlain) {
        counts.outside++
        return
      }
      checks.push(
        checkExchange({
          method,
          url: inside,
          headers,
          body,
          status: reply.status,
          answerHeaders: reply.headers,
          answer: reply.body
        })
      )
    }
    // A connection that the server cut is cut here too.
    pass().catch(() => response.destroy())
  })
  const control = createServer((message, response) => {
    const pass = async () => {
      const body = await bytesOf(message)
      const url = message.url ?? "/"
      const reply = await send(
        ready.controlUrl,
        message.method ?? "GET",
        url,
        { ...plain(message.headers), host: "127.0.0.1" },
        body
      )
      if (url === "/reset" || (url === "/faults" && message.method === "DELETE")) isPlain = true
      if (url === "/dialect") isPlain = false
      if (url === "/faults" && message.method === "POST") isPlain = false
      if (url === "/records" && message.method === "POST") {
        oddRecords++
        putIn.push(JSON.stringify(JSON.parse(body.toString("utf8"))))
      }
      response.writeHead(reply.status, reply.headers).end(reply.body)
    }
    pass().catch(() => response.destroy())
  })
  const env = {
    ...process.env,
    CONFORMANCE_BASE_URL: `${await listening(recorder)}${basePath}`,
    CONFORMANCE_CONTROL_URL: await listening(control)
  }
  const files = chosen.length === 0 ? ["test/conformance/"] : chosen.map((name) => `test/conformance/${name}`)
  const suite = spawn(
    "npx",
    ["vitest", "run", "--config", "config/vitest.config.ts", "--no-file-parallelism", "--reporter=default", ...files],
    { cwd: root, env, stdio: "inherit" }
  )
  const code = await new Promise<number | null>((resolve) => suite.once("exit", resolve))
  await Promise.race([Promise.all(checks), sleep(120_000)])
  const listed = [...kinds].toSorted((a, b) => b[1].count - a[1].count)
  for (const [key, { count, example }] of listed) process.stdout.write(`${count}× ${key}\n    ${example}\n`)
  process.stdout.write(
    `checker: ${isOwn ? "test/support/contract.ts" : "Prism"}; ${counts.exchanges} exchanges checked, ` +
      `${counts.outside} outside of the document (another dialect, faults, other paths), ${counts.unchecked} that the checker could not process; ` +
      `${oddRecords} calls inserted records without checks\n` +
      `requests that violate the document (the suite provokes them): ${counts.request}\n` +
      `answers with values inserted without checks: ${counts.putIn}\n` +
      `answers that violate the document: ${counts.response} in ${kinds.size} kinds\n` +
      `suite: ${code === 0 ? "passed" : `ended with ${code}`}\n`
  )
  recorder.close()
  control.close()
  end()
  process.exit(code === 0 && counts.response === 0 ? 0 : 1)
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    end()
    process.exit(130)
  })
}
main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  end()
  process.exit(1)
})
