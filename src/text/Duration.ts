/** A length of time in the one unit that a person would choose: `45 s`, `12 min`, `3 h`, `5 d`. */
export const duration = (milliseconds: number): string => {
  const ms = Math.max(0, milliseconds)
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 90_000) return `${Math.round(ms / 1_000)} s`
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 36 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}
