/**
 * A tap between a command and the world: a loopback proxy for its requests and one for its database.
 *
 * Promise: every byte that a command sends passes here first, in order, and the watcher is called before it goes on. So
 * a command can be stopped at an exact place, independent of the machine's speed. Examples: after the k-th request was
 * answered and before the answer arrives; between a commit and its confirmation.
 */
import { Agent, createServer as createHttpServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

/** A moment in the work of a command. */
export type Moment =
  /** A request that arrives, is answered, has half of its answer passed, or all of it. Numbered from 1. */
  | {
      readonly kind: "request"
      readonly number: number
      readonly method: string
      readonly path: string
      readonly stage: "asked" | "answered" | "half" | "delivered"
    }
  /** A message to the database, before it goes on. Numbered from 1. The text is empty when it has no statement. */
  | { readonly kind: "message"; readonly number: number; readonly text: string }
  /** A landing: the begin, the first rows, the commit on its way, the commit done, its confirmation delivered. */
  | {
      readonly kind: "landing"
      readonly number: number
      readonly stage: "opened" | "rows" | "commit" | "committed" | "confirmed"
    }

/** Called before a message of the command goes on; its promise is awaited. */
export type Watcher = (moment: Moment) => Promise<void> | void

export interface Counts {
  readonly requests: number
  readonly messages: number
  readonly landings: number
}

/** The work of one command so far. */
export interface CommandWatch {
  readonly counts: () => Counts
  /** Whether a landing is between its begin and the confirmation of its commit. */
  readonly isLanding: () => boolean
  /** The tap's ports of its connections to the database, by which the database knows them. */
  readonly databasePorts: () => ReadonlyArray<number>
}

export interface Tap {
  readonly baseUrl: string
  readonly databaseUrl: string
  /** Begins to watch another command: counts begin at 0, and connections of the previous one are cut. */
  readonly watch: (watcher: Watcher) => CommandWatch
  readonly close: () => Promise<void>
}

/** For a watcher that has ended the command: nothing goes on. */
export const never = new Promise<void>(() => {})

interface Session extends CommandWatch {
  readonly notify: Watcher
  readonly sockets: Set<Socket>
  readonly ports: Set<number>
  requests: number
  messages: number
  landings: number
  open: number
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })

/** A message of a Postgres client: its type (none at the start of a connection) and its bytes. */
interface Message {
  readonly type: string
  readonly bytes: Buffer
}

/** Splits the bytes of a client into messages. The first one of a connection has no type. */
const messages = () => {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = true
  return (chunk: Buffer): ReadonlyArray<Message> => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const found: Array<Message> = []
    for (;;) {
      const head = isFirst ? 0 : 1
      if (rest.length < head + 4) return found
      const end = head + rest.readUInt32BE(head)
      if (rest.length < end) return found
      found.push({ type: isFirst ? "" : String.fromCharCode(rest[0]!), bytes: rest.subarray(0, end) })
      isFirst = false
      rest = rest.subarray(end)
    }
  }
}

/** The statements of a connection: of a simple query, or of a message that binds a parsed one. */
const statements = () => {
  const prepared = new Map<string, string>()
  return ({ type, bytes }: Message): string => {
    if (type === "Q") return bytes.toString("utf8", 5, bytes.length - 1)
    if (type !== "P" && type !== "B") return ""
    const first = bytes.indexOf(0, 5)
    const second = bytes.indexOf(0, first + 1)
    if (type === "B") return prepared.get(bytes.toString("utf8", first + 1, second)) ?? ""
    prepared.set(bytes.toString("utf8", 5, first), bytes.toString("utf8", first + 1, second))
    return ""
  }
}

const opensLanding = (text: string) => text.includes("tributary.checkpoints") && text.includes("for update")

const passDatabase = (session: Session, client: Socket, upstream: { readonly host: string; readonly port: number }) => {
  const server = connect(upstream)
  server.once("connect", () => session.ports.add(server.localPort!))
  for (const [one, other] of [
    [client, server],
    [server, client]
  ] as const) {
    session.sockets.add(one)
    one.setNoDelay(true)
    one.on("error", () => {})
    one.once("close", () => {
      session.sockets.delete(one)
      other.destroy()
    })
  }
  const split = messages()
  const textOf = statements()
  /** The landing that this connection is in; null between landings. */
  let landing: { readonly number: number; hasRows: boolean; committing: boolean } | null = null
  client.once("close", () => {
    if (landing !== null) session.open -= 1
    landing = null
  })
  const forwardMessage = async (message: Message) => {
    const text = textOf(message)
    session.messages += 1
    await session.notify({ kind: "message", number: session.messages, text })
    if (landing === null && opensLanding(text)) {
      session.landings += 1
      session.open += 1
      landing = { number: session.landings, hasRows: false, committing: false }
      await session.notify({ kind: "landing", number: landing.number, stage: "opened" })
    } else if (landing !== null && message.type === "d" && !landing.hasRows) {
      landing.hasRows = true
      await session.notify({ kind: "landing", number: landing.number, stage: "rows" })
    } else if (landing !== null && /^commit$/i.test(text)) {
      landing.committing = true
      await session.notify({ kind: "landing", number: landing.number, stage: "commit" })
    } else if (landing !== null && /^rollback$/i.test(text)) {
      session.open -= 1
      landing = null
    }
    server.write(message.bytes)
  }
  const answer = async (chunk: Buffer): Promise<void> => {
    if (landing?.committing !== true) {
      client.write(chunk)
      return
    }
    const { number } = landing
    await session.notify({ kind: "landing", number, stage: "committed" })
    if (landing !== null) session.open -= 1
    landing = null
    client.write(chunk)
    await session.notify({ kind: "landing", number, stage: "confirmed" })
  }
  let sent = Promise.resolve()
  let answered = Promise.resolve()
  client.on("data", (chunk: Buffer) => {
    for (const message of split(chunk)) sent = sent.then(() => forwardMessage(message))
  })
  server.on("data", (chunk: Buffer) => {
    answered = answered.then(() => answer(chunk))
  })
}

export const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const passRequest = async (
  session: Session,
  incoming: IncomingMessage,
  response: ServerResponse,
  upstream: URL,
  agent: Agent
) => {
  const path = incoming.url ?? "/"
  const method = incoming.method ?? "GET"
  const number = (session.requests += 1)
  const body = await bodyOf(incoming)
  const notify = (stage: Extract<Moment, { kind: "request" }>["stage"]) =>
    session.notify({ kind: "request", number, method, path, stage })
  await notify("asked")
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const { hostname, port } = upstream
    request({ hostname, port, path, method, headers: incoming.headers, agent }, resolve).once("error", reject).end(body)
  })
  const bytes = await bodyOf(answer)
  await notify("answered")
  response.writeHead(answer.statusCode!, answer.headers)
  const middle = bytes.length >> 1
  await new Promise((resolve) => response.write(bytes.subarray(0, middle), resolve))
  await notify("half")
  await new Promise<void>((resolve) => response.end(bytes.subarray(middle), resolve))
  await notify("delivered")
}

/** Opens a tap in front of a service and a database. */
export const openTap = async (upstream: { readonly baseUrl: string; readonly databaseUrl: string }): Promise<Tap> => {
  const service = new URL(upstream.baseUrl)
  const database = new URL(upstream.databaseUrl)
  const agent = new Agent({ keepAlive: true })

  const sessionOf = (notify: Watcher): Session => {
    const session: Session = {
      notify,
      sockets: new Set(),
      ports: new Set(),
      requests: 0,
      messages: 0,
      landings: 0,
      open: 0,
      counts: () => ({ requests: session.requests, messages: session.messages, landings: session.landings }),
      isLanding: () => session.open > 0,
      databasePorts: () => [...session.ports]
    }
    return session
  }
  let current = sessionOf(() => {})
  const owners = new WeakMap<Socket, Session>()

  const httpServer = createHttpServer((incoming, response) => {
    passRequest(owners.get(incoming.socket) ?? current, incoming, response, service, agent).catch(() =>
      response.destroy()
    )
  })
  httpServer.keepAliveTimeout = 0
  httpServer.on("connection", (socket: Socket) => {
    owners.set(socket, current)
    const { sockets } = current
    sockets.add(socket)
    socket.on("error", () => {})
    socket.once("close", () => sockets.delete(socket))
  })
  const databaseServer = createServer((client) =>
    passDatabase(current, client, { host: database.hostname, port: Number(database.port) })
  )
  const [httpPort, databasePort] = await Promise.all([listen(httpServer), listen(databaseServer)])
  const tapped = (url: URL, port: number) => {
    const copy = new URL(url)
    copy.hostname = "127.0.0.1"
    copy.port = String(port)
    return copy.href
  }
  const cut = () => {
    for (const socket of current.sockets) socket.destroy()
  }
  return {
    baseUrl: tapped(service, httpPort),
    databaseUrl: tapped(database, databasePort),
    watch: (watcher) => {
      cut()
      current = sessionOf(watcher)
      return current
    },
    close: async () => {
      cut()
      agent.destroy()
      await Promise.all([httpServer, databaseServer].map((server) => new Promise((resolve) => server.close(resolve))))
    }
  }
}
