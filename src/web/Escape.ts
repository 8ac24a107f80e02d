/**
 * Escaping of foreign text, and addresses of pages.
 *
 * Promise: characters that are invisible, or that change the reading order, are shown as escapes. An address that is
 * made here stays within the pages, whatever its parts contain.
 */

const escaped = (character: string): string => {
  const code = character.codePointAt(0)!
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`
}

/** One line of text. */
export const visible = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped)

/** Text of several lines, which stay lines. */
export const visibleLines = (text: string): string => text.split("\n").map(visible).join("\n")

/** The beginning of a text that may be long, on one line. */
export const truncated = (text: string, charactersMax: number): string =>
  text.length <= charactersMax
    ? visible(text)
    : `${visible(text.slice(0, charactersMax))}… (${text.length.toLocaleString("en-US")} characters)`

export { plural } from "../text/Count.ts"

/** A path with a query; null and empty values are left out. */
export const address = (path: string, query: Readonly<Record<string, string | null>>): string => {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== "") given.set(name, value)
  return given.size === 0 ? path : `${path}?${given.toString()}`
}
