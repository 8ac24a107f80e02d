/**
 * The entry to the web pages: which requests are theirs. The pages are loaded with the first one. Those of a world are
 * below its address: `/worlds/NAME/ui/`.
 */
import type { Answer, Request } from "../http/Message.ts"
import { json } from "../http/Message.ts"
import { splitWorld } from "../worlds/Worlds.ts"
import type { PagesOptions } from "./Application.ts"
import { root } from "./Page.ts"

/** Whether the address is one of a page, of any world. */
export const isPage = (address: string): boolean => {
  const { url } = splitWorld(address)
  return url === root || url.startsWith(`${root}/`) || url.startsWith(`${root}?`)
}

const pageMethods = ["GET", "HEAD", "POST"]

/** Whether a browser opened the address of the control plane itself. */
const isFront = ({ method, url, headers }: Request): boolean =>
  method === "GET" && url === "/" && (headers["accept"] ?? "").includes("text/html")

/** Answers requests for pages; null for any other request. */
export const pages = (options: PagesOptions): ((request: Request) => Answer | null) => {
  let loaded: Promise<(request: Request) => Promise<Answer>> | null = null
  const answer = async (request: Request): Promise<Answer> => {
    loaded ??= import("./Application.ts").then(({ make }) => make(options))
    return (await loaded)(request)
  }
  return (request) => {
    if (isFront(request)) return { status: 302, headers: { Location: `${root}/` }, body: "", wire: null }
    if (!isPage(request.url)) return null
    if (!pageMethods.includes(request.method)) {
      return { status: 405, headers: { Allow: pageMethods.join(", ") }, body: "", wire: null }
    }
    const failed = (error: unknown): Answer => {
      options.worlds.main.onDefect(error)
      return { status: 500, headers: { "Content-Type": json }, body: '{"error":"the page failed"}', wire: null }
    }
    return { status: 200, headers: {}, body: "", wire: null, pending: answer(request).catch(failed) }
  }
}
