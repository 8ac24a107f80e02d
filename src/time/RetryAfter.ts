/** The header Retry-After of an answer to a webhook. */

/** Milliseconds from now on, of seconds or a date; null where it states none. */
export const millisOf = (header: string | undefined, nowMs: number): number | null => {
  if (header === undefined) return null
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}
