/**
 * Sources of any number of companies without news: the token `token-7` is of company 7, and every list has the same
 * records, none by default. Each source is an installation: all have the same company numbers and ids.
 *
 * `quiet-source.ts [sources] [records]` prints the addresses in one line when all listen, and ends with SIGTERM.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const [sources, count] = [Number(process.argv[2] ?? 1), Number(process.argv[3] ?? 0)]
const data = Array.from({ length: count }, (_, index) => ({ id: index + 1, lastchangedate: "2026-01-01T00:00:00Z" }))
const list = JSON.stringify({ data, _meta: { count, has_more: false, next_cursor: null } })

const listen = () =>
  new Promise<string>((resolve) => {
    const server = createServer(({ headers, url = "" }, response) => {
      const company = /^Bearer token-(\d+)$/.exec(headers.authorization ?? "")?.[1]
      const identity = { data: { companyid: Number(company), user: "api", scopes: ["*"] } }
      response.writeHead(company === undefined ? 401 : 200, { "content-type": "application/json" })
      response.end(url.endsWith("/me") ? JSON.stringify(identity) : list)
    })
    server.keepAliveTimeout = 60_000
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })

const addresses = await Promise.all(Array.from({ length: sources }, listen))
process.stdout.write(`${addresses.join(" ")}\n`)
process.once("SIGTERM", () => process.exit(0))
