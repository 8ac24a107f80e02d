/**
 * A receiver of changes in a process of its own. It verifies each signature by the published library and writes each
 * accepted change into a journal before it answers. It prints its port, and ends with its input.
 *
 * `--port N` (0: any) · `--journal FILE` · `--secret TEXT` · `--faults`: it loses some answers after the journal has the
 * changes, and refuses some messages before
 *
 * A line of the journal: time of arrival, time of landing, id of the message, id of the change, resource, record, version,
 * position, checksum of the change.
 */
import { createHash } from "node:crypto"
import { appendFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { parseArgs } from "node:util"
import { Webhook } from "standardwebhooks"

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    journal: { type: "string" },
    secret: { type: "string" },
    faults: { type: "boolean", default: false }
  }
})
process.stdin.once("end", () => process.exit(0)).resume()

interface Data {
  readonly change: string
  readonly position: number
  readonly companyId: number
  readonly resource: string
  readonly id: number | null
  readonly version: number | null
  readonly landedAt: string
}

const webhook = new Webhook(values.secret!)
const faultShare = 0.01

const server = createServer((request, response) => {
  const parts: Array<Buffer> = []
  request.on("data", (part: Buffer) => parts.push(part))
  request.on("end", () => {
    const arrivedMs = Date.now()
    const body = Buffer.concat(parts).toString("utf8")
    let message: { readonly data: Data | ReadonlyArray<Data> }
    try {
      message = webhook.verify(body, request.headers as Record<string, string>) as typeof message
    } catch (error) {
      process.stderr.write(`a signature is wrong: ${String(error)}\n`)
      response.writeHead(401).end()
      return
    }
    if (values.faults && Math.random() < faultShare) {
      response.writeHead(500).end()
      return
    }
    const data = (Array.isArray(message.data) ? message.data : [message.data]) as ReadonlyArray<Data>
    const lines = data.map((one) =>
      [
        arrivedMs,
        Date.parse(one.landedAt),
        String(request.headers["webhook-id"]),
        one.change,
        `${one.companyId}/${one.resource}`,
        one.id ?? "-",
        one.version ?? "-",
        one.position,
        createHash("md5").update(JSON.stringify(one)).digest("hex")
      ].join(" ")
    )
    appendFileSync(values.journal!, `${lines.join("\n")}\n`)
    if (values.faults && Math.random() < faultShare) request.socket.destroy()
    else response.writeHead(204).end()
  })
})
server.listen(Number(values.port), "127.0.0.1", () => console.log((server.address() as AddressInfo).port))
