/**
 * Ports for programs whose port is configured before they listen.
 *
 * They are below the range from which Linux and other systems choose ports for port 0 and for outgoing connections. A
 * port of that range can belong to another program by the time its own program listens.
 */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"

/** Each worker of a run has a range of its own. */
const ranges = 5
const portsMin = 10_000
const portsOfRange = 4_000
const used = new Set<number>()

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** A port of this machine on which no program listens. No other call returns it. */
export const freePort = async (): Promise<number> => {
  const range = Number(process.env["VITEST_POOL_ID"] ?? 0) % ranges
  for (;;) {
    const port = portsMin + range * portsOfRange + randomInt(portsOfRange)
    if (used.has(port)) continue
    used.add(port)
    if (await isFree(port)) return port
  }
}
