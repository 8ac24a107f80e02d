/**
 * A limit on connections, in total and for each address.
 *
 * Promise: while another connection is idle or slow, a new connection is accepted. A connection is slow when its
 * request is incomplete, or its answer was not read for a second. The oldest such connection of the address with the
 * most connections is cut, idle ones first. So slow peers, from one address or many, cannot keep out a peer that sends
 * at once. A complete request is always answered.
 *
 * One address keeps a few dozen slow connections at most. For this limit a request is slow only after a second, since a
 * proxy passes on bursts from one address. A connection that sends requests without waiting for answers is cut:
 * thousands of them fit into one packet, and each answer takes memory.
 */
import type * as http from "node:http"
import { isIPv4, type Socket } from "node:net"

export interface ConnectionLimitOptions {
  readonly connectionsMax: number
  /** Connections of one address whose request is incomplete, or whose answer is unread, after a second. */
  readonly perAddressMax: number
  readonly nowMs: () => number
  /** A connection was cut although it had begun a request, or because there was no place for it. */
  readonly onCut: () => void
}

interface Connection {
  readonly socket: Socket
  readonly address: string
  /** When it was accepted, was answered, or sent the head of a further request. */
  sinceMs: number
  request: http.IncomingMessage | null
  response: http.ServerResponse | null
  isAnswered: boolean
  /** Requests whose answer the peer has not read. */
  unansweredCount: number
  /** When the answer was first seen complete and not read. */
  unreadSinceMs: number | null
}

export interface ConnectionLimit {
  /** Counts an accepted connection. */
  readonly add: (socket: Socket) => void
  /**
   * Counts a request whose head has arrived, until its response closes. False if the connection was cut: the request
   * must not be handled.
   */
  readonly begin: (request: http.IncomingMessage, response: http.ServerResponse) => boolean
}

const slowMs = 1_000
/** Known clients do not send more requests before they have an answer. */
const unansweredMax = 4

/** The address that counts as one peer: an IPv4 address, or the 64-bit prefix of an IPv6 network. */
export const addressOf = (remote: string): string => {
  const mapped = remote.replace(/^::ffff:/i, "")
  if (isIPv4(mapped)) return mapped
  const [head = "", tail] = remote.split("%")[0]!.split("::")
  const groups = head === "" ? [] : head.split(":")
  const behind = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => "0")
  return [...groups, ...zeros, ...behind].slice(0, 4).join(":")
}

interface Connections {
  readonly options: ConnectionLimitOptions
  /** By address; the oldest first. */
  readonly byAddress: Map<string, Set<Connection>>
  /** By the peer's address and port: with TLS, a request has another socket than the accepted one. */
  readonly byPeer: Map<string, Connection>
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
const isIdle = ({ request, isAnswered }: Connection) => request === null && isAnswered
const isUnfinished = ({ request, isAnswered }: Connection) => (request === null ? !isAnswered : !request.complete)
const isUnread = ({ options: { nowMs } }: Connections, connection: Connection) => {
  if (connection.response?.writableEnded !== true) return false
  connection.unreadSinceMs ??= nowMs()
  return nowMs() - connection.unreadSinceMs >= slowMs
}

/** Makes the connection the newest of its address. */
const touch = ({ options, byAddress }: Connections, connection: Connection) => {
  const same = byAddress.get(connection.address)
  if (same?.delete(connection) !== true) return
  connection.sinceMs = options.nowMs()
  same.add(connection)
}

const cut = ({ options }: Connections, connection: Connection) => {
  if (!isIdle(connection)) options.onCut()
  connection.socket.destroy()
}

/** The connection of this address that is cut first; undefined where none is idle or slow. */
const slowestOf = (
  connections: Connections,
  same: ReadonlySet<Connection>,
  newest: Connection
): Connection | undefined => {
  let slowest: Connection | undefined
  for (const one of same) {
    if (one === newest || one.socket.destroyed) continue
    if (isIdle(one)) return one
    if (slowest === undefined && (isUnfinished(one) || isUnread(connections, one))) slowest = one
  }
  return slowest
}

const makeRoom = (connections: Connections, newest: Connection) => {
  let most = 0
  let found: Connection | undefined
  for (const same of connections.byAddress.values()) {
    if (same.size <= most) continue
    const slowest = slowestOf(connections, same, newest)
    if (slowest === undefined) continue
    most = same.size
    found = slowest
  }
  cut(connections, found ?? newest)
}

const limitAddress = (connections: Connections, same: ReadonlySet<Connection>) => {
  const { perAddressMax, nowMs } = connections.options
  if (same.size <= perAddressMax) return
  const slow = [...same].filter((one) =>
    isUnfinished(one) ? nowMs() - one.sinceMs >= slowMs : isUnread(connections, one)
  )
  if (slow.length >= perAddressMax) cut(connections, slow[0]!)
}

const add = (connections: Connections, socket: Socket) => {
  const { options, byAddress, byPeer } = connections
  const address = addressOf(socket.remoteAddress ?? "")
  const connection: Connection = {
    socket,
    address,
    sinceMs: options.nowMs(),
    request: null,
    response: null,
    isAnswered: false,
    unansweredCount: 0,
    unreadSinceMs: null
  }
  const peer = peerOf(socket)
  const same = byAddress.get(address) ?? new Set()
  byAddress.set(address, same.add(connection))
  byPeer.set(peer, connection)
  socket.once("close", () => {
    same.delete(connection)
    if (same.size === 0 && byAddress.get(address) === same) byAddress.delete(address)
    if (byPeer.get(peer) === connection) byPeer.delete(peer)
  })
  limitAddress(connections, same)
  if (byPeer.size > options.connectionsMax) makeRoom(connections, connection)
}

const begin = (connections: Connections, request: http.IncomingMessage, response: http.ServerResponse): boolean => {
  const connection = connections.byPeer.get(peerOf(request.socket))
  // The rest of the last packet is still parsed after the cut.
  if (connection?.socket.destroyed === true || request.socket.destroyed) return false
  if (connection === undefined) return true
  connection.unansweredCount += 1
  if (connection.unansweredCount > unansweredMax) {
    cut(connections, connection)
    return false
  }
  connection.request = request
  connection.response = response
  connection.unreadSinceMs = null
  if (connection.isAnswered) touch(connections, connection)
  response.once("close", () => {
    connection.unansweredCount -= 1
    // The next request may have come already.
    if (connection.request !== request) return
    connection.request = null
    connection.response = null
    connection.isAnswered = true
    touch(connections, connection)
  })
  return true
}

export const make = (options: ConnectionLimitOptions): ConnectionLimit => {
  const connections: Connections = { options, byAddress: new Map(), byPeer: new Map() }
  return {
    add: (socket) => add(connections, socket),
    begin: (request, response) => begin(connections, request, response)
  }
}
