/**
 * A limit on connections, in total and for each address.
 *
 * Promise: a connection that is made always finds a place, as long as any other is idle or has not sent a whole request.
 * In its place the oldest such connection of the address that holds most is cut; an idle one goes before one that sends.
 * So peers that send slowly, from one address or many, cannot keep out a peer that sends at once. A request that came
 * whole is always answered. One address keeps a few dozen unfinished requests at most, but a proxy passes on bursts from
 * one address: therefore a request counts as slow only after a second.
 */
import type * as http from "node:http"
import { isIPv4, type Socket } from "node:net"

export interface ConnectionLimitOptions {
  readonly connectionsMax: number
  /** Requests of one address that have not come whole after a second. */
  readonly perAddressMax: number
  readonly nowMs: () => number
  /** A connection was cut although it had begun a request, or has found no place. */
  readonly onCut: () => void
}

interface Connection {
  readonly socket: Socket
  readonly address: string
  /** When it was made, was answered, or sent the head of a further request. */
  sinceMs: number
  request: http.IncomingMessage | null
  isAnswered: boolean
}

export interface ConnectionLimit {
  /** A connection was made. */
  readonly add: (socket: Socket) => void
  /** The head of a request has come; it has been answered when the response closes. */
  readonly begin: (request: http.IncomingMessage, response: http.ServerResponse) => void
}

const slowMs = 1_000

/** What one peer has: an IPv4 address, or the 64-bit prefix of an IPv6 network. */
export const addressOf = (remote: string): string => {
  const mapped = remote.replace(/^::ffff:/i, "")
  if (isIPv4(mapped)) return mapped
  const [head = "", tail] = remote.split("%")[0]!.split("::")
  const groups = head === "" ? [] : head.split(":")
  const behind = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - behind.length) }, () => "0")
  return [...groups, ...zeros, ...behind].slice(0, 4).join(":")
}

export const make = (options: ConnectionLimitOptions): ConnectionLimit => {
  const { connectionsMax, perAddressMax, nowMs, onCut } = options
  /** By address; the oldest first. */
  const byAddress = new Map<string, Set<Connection>>()
  /** By the peer's end: with TLS, a request knows another socket than the one that was accepted. */
  const byPeer = new Map<string, Connection>()
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

  const isIdle = ({ request, isAnswered }: Connection) => request === null && isAnswered
  const isUnfinished = ({ request, isAnswered }: Connection) => (request === null ? !isAnswered : !request.complete)

  const touch = (connection: Connection) => {
    const same = byAddress.get(connection.address)
    if (same?.delete(connection) !== true) return
    connection.sinceMs = nowMs()
    same.add(connection)
  }
  const cut = (connection: Connection) => {
    if (!isIdle(connection)) onCut()
    connection.socket.destroy()
  }
  /** The connection of this address that has to go, should one have to. */
  const slowestOf = (same: ReadonlySet<Connection>, newest: Connection): Connection | undefined => {
    let slowest: Connection | undefined
    for (const one of same) {
      if (one === newest || one.socket.destroyed) continue
      if (isIdle(one)) return one
      if (slowest === undefined && isUnfinished(one)) slowest = one
    }
    return slowest
  }
  const makeRoom = (newest: Connection) => {
    let most = 0
    let found: Connection | undefined
    for (const same of byAddress.values()) {
      if (same.size <= most) continue
      const slowest = slowestOf(same, newest)
      if (slowest === undefined) continue
      most = same.size
      found = slowest
    }
    cut(found ?? newest)
  }
  const holdToAddress = (same: ReadonlySet<Connection>) => {
    if (same.size <= perAddressMax) return
    const slow = [...same].filter((one) => isUnfinished(one) && nowMs() - one.sinceMs >= slowMs)
    if (slow.length >= perAddressMax) cut(slow[0]!)
  }

  return {
    add: (socket) => {
      const address = addressOf(socket.remoteAddress ?? "")
      const connection: Connection = { socket, address, sinceMs: nowMs(), request: null, isAnswered: false }
      const peer = peerOf(socket)
      const same = byAddress.get(address) ?? new Set()
      byAddress.set(address, same.add(connection))
      byPeer.set(peer, connection)
      socket.once("close", () => {
        same.delete(connection)
        if (same.size === 0 && byAddress.get(address) === same) byAddress.delete(address)
        if (byPeer.get(peer) === connection) byPeer.delete(peer)
      })
      holdToAddress(same)
      if (byPeer.size > connectionsMax) makeRoom(connection)
    },
    begin: (request, response) => {
      const connection = byPeer.get(peerOf(request.socket))
      if (connection === undefined) return
      connection.request = request
      if (connection.isAnswered) touch(connection)
      response.once("close", () => {
        // The next request may have come already.
        if (connection.request !== request) return
        connection.request = null
        connection.isAnswered = true
        touch(connection)
      })
    }
  }
}
