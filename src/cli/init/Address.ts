/**
 * The address of a service, corrected from a pasted form.
 *
 * Promise: an obvious mistake is corrected and reported; any other mistake is a sentence with the expected form. An
 * address never becomes less safe: https does not become http, and plain http to another machine is refused.
 */
import { controlCharacterProblem, hasControlCharacter } from "../../delivery/Endpoint.ts"

/** Up to the API's own path. */
const apiPath = "/!/api/v2"

export interface Address {
  readonly url: string
  /** The corrections, a sentence each. */
  readonly changes: ReadonlyArray<string>
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)

const expected = `expected the address up to the API's own path, for example https://erp.example.com${apiPath}`

/** The address, or what is wrong with it. */
export const read = (given: string): Address | string => {
  const changes: Array<string> = []
  const text = given.trim().replace(/^(["'])(.*)\1$/, "$2")
  if (text === "") return expected
  if (hasControlCharacter(text)) return controlCharacterProblem
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
  const host = /^(\[[^\]]*\]|[^/:?#]*)/.exec(text)?.[1] ?? ""
  const whole = hasScheme ? text : `${isLoopback(host) ? "http" : "https"}://${text}`
  if (!URL.canParse(whole)) return `this is no address; ${expected}`
  const url = new URL(whole)
  if (!hasScheme) changes.push(`${url.protocol}// was added in front`)
  if (url.username !== "" || url.password !== "")
    return "the address carries credentials: remove them, the token is given separately"
  if (url.protocol !== "https:" && url.protocol !== "http:") return `this is no https address; ${expected}`
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return `over plain http any machine on the way to ${url.host} could read the token: use https`
  }
  if (url.search !== "" || url.hash !== "") changes.push("the part from ? or # was removed")
  const path = url.pathname.replaceAll("%21", "!").replace(/\/+$/, "")
  const below = path.toLowerCase().indexOf(apiPath)
  if (below >= 0) {
    const end = below + apiPath.length
    if (path.length > end && path[end] !== "/") return expected
    if (path.length > end) changes.push(`${path.slice(end)} was removed: the address ends in ${apiPath}`)
    return { url: `${url.origin}${path.slice(0, below)}${apiPath}`, changes }
  }
  // A folder of a reverse proxy before the API's path looks like a page of the service.
  if (path !== "" && !apiPath.startsWith(path.toLowerCase())) return `this ends in ${path}; ${expected}`
  changes.push(`${apiPath} was appended`)
  return { url: `${url.origin}${apiPath}`, changes }
}
