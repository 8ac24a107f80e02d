/** HTML templates: `html` escapes every value that is not HTML already. */
import type { html } from "hono/html"

export { html } from "hono/html"

export type Html = ReturnType<typeof html>

/** A page without the indentation of its templates, which is a quarter of a page; preformatted text keeps its own. */
export const withoutIndent = (page: string): string =>
  page.replace(/<(pre|textarea)\b[\s\S]*?<\/\1>|\n\s+/g, (found, kept?: string) => (kept === undefined ? "\n" : found))
