/** The modification time of an event or a record, and the comparison of two of them at their common precision. */

/** The stamp, where it is an instant in UTC that a timestamptz holds exactly; null otherwise. */
export const exactStamp = (stamp: string | null): string | null => {
  if (stamp === null || !/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(stamp)) return null
  const seconds = stamp.slice(0, 19)
  const at = new Date(`${seconds}Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 19) === seconds ? stamp : null
}

/**
 * Whether a record was modified before the time that an event shows. A source may show events more exactly than records.
 * Where the digits differ in number, whole seconds are compared.
 */
export const isBefore = (recordStamp: string | null, eventStamp: string | null): boolean => {
  const [record, event] = [exactStamp(recordStamp), exactStamp(eventStamp)]
  if (record === null || event === null) return false
  return record.length === event.length ? record < event : record.slice(0, 19) < event.slice(0, 19)
}

/** One unit of the last digit of the stamp, in seconds. The change happened at any time within it. */
export const unitSecondsOf = (stamp: string): number =>
  10 ** -Math.max(0, stamp.length - "0000-00-00T00:00:00.Z".length)
