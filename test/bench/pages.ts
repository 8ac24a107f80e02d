/** A minimal reader of lists: the next page is requested before this one is used. */
import { Pool } from "undici"

export interface List {
  readonly resource: string
  readonly pageSize: number
  readonly since?: string | undefined
}

/** The token of the next page is behind the records: it is known before they are parsed. */
const cursorOf = (page: Buffer): string | null =>
  /"next_cursor":"([^"]*)"/.exec(page.toString("latin1", Math.max(0, page.length - 2000)))?.[1] ?? null

export const openPages = (baseUrl: string, token: string) => {
  const { origin, pathname } = new URL(baseUrl)
  const pool = new Pool(origin, { connections: 2, pipelining: 1 })
  const ask = async ({ resource, pageSize, since }: List, cursor: string | null): Promise<Buffer> => {
    const parameters = new URLSearchParams({
      limit: String(pageSize),
      ...(since === undefined ? {} : { modifiedsince: since }),
      ...(cursor === null ? {} : { cursor })
    })
    const { body, statusCode } = await pool.request({
      method: "GET",
      path: `${pathname}/${resource}?${parameters.toString()}`,
      headers: { authorization: `Bearer ${token}` }
    })
    if (statusCode !== 200) throw new Error(`${resource}: ${statusCode} ${await body.text()}`)
    return Buffer.from(await body.arrayBuffer())
  }
  return {
    read: async function* (list: List) {
      for (let next: Promise<Buffer> | null = ask(list, null); next !== null;) {
        const page: Buffer = await next
        const cursor = cursorOf(page)
        next = cursor === null ? null : ask(list, cursor)
        // The error is handled where the page is awaited. Until then it must not end the process as unhandled.
        next?.catch(() => undefined)
        yield { page, isLast: next === null }
      }
    },
    close: () => pool.close()
  }
}
