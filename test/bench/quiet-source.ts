/**
 * A source of any number of companies without news: the token `token-7` is of company 7, and every list is empty.
 *
 * It prints its address when it listens, and ends with SIGTERM.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const empty = JSON.stringify({ data: [], _meta: { count: 0, has_more: false, next_cursor: null } })

const server = createServer(({ headers, url = "" }, response) => {
  const company = /^Bearer token-(\d+)$/.exec(headers.authorization ?? "")?.[1]
  const identity = { data: { companyid: Number(company), user: "api", scopes: ["*"] } }
  response.writeHead(company === undefined ? 401 : 200, { "content-type": "application/json" })
  response.end(url.endsWith("/me") ? JSON.stringify(identity) : empty)
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})
process.once("SIGTERM", () => process.exit(0))
