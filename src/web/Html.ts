/** HTML templates: `html` escapes every value that is not HTML already. */
import type { html } from "hono/html"

export { html } from "hono/html"

export type Html = ReturnType<typeof html>
