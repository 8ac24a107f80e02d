/**
 * The fault classes of writes.
 *
 * Only `PushPlan.ts` draws them. Seeds without pushes are not affected.
 */
export const pushClasses = {
  U1: "writes that fail before they are processed",
  U2: "answers to writes that are lost, cut off, or too late",
  U3: "writes that take longer than any timeout",
  U4: "proxies that send a write again: at once, hours later, twice",
  U6: "429 for writes",
  U7: "500 although the write was done",
  U8: "500 that is stored and answered for ever, whether the write was done or not",
  U9: "HTML in place of the answer to a write",
  U10: "207 that lacks items, doubles them, or has them in another order",
  U11: "statuses of batch items as text",
  U12: "an externalid that is unique at the source",
  U13: "batches that are rejected as a whole, or fail, because of one bad record",
  U14: "records of a batch that fail temporarily",
  U15: "days between two runs, with requests left open",
  U16: "other people who change the same records meanwhile",
  U17: "externalids that other people have used before",
  U18: "records that the source rejects",
  U19: "updates and cancels, several for one record",
  U20: "batches smaller than documented, or no batches",
  U21: "rows inserted by SQL, sent by a service",
  U22: "two pushers at once",
  U23: "a source that fails every write for a while",
  U24: "401, 403 and redirects for writes"
} as const

export type PushClass = keyof typeof pushClasses

export const isOfPushes = (name: string): name is PushClass => name in pushClasses

/** Whether a fault is a race or a crash. Faults are counted by these names. */
export const isRaceOrCrash = (fired: string): boolean =>
  /^(?:(?:C1|C2|C3|D1|D3|D8|U2|U3|U4|U7|U15|U22) |U8 (?:not )?done)/.test(fired)
