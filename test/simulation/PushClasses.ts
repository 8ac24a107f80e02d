/**
 * What goes wrong with writes.
 *
 * They are drawn by `PushPlan.ts` alone: seeds without pushes know nothing of them.
 */
export const pushClasses = {
  U1: "writes that fail before they are done",
  U2: "answers to writes lost, cut off, or too late",
  U3: "work that takes longer than anybody waits",
  U4: "proxies that send a write again: at once, hours later, twice",
  U6: "429 for writes",
  U7: "500 although the work was done",
  U8: "500 that is stored and answered for ever, the work done or not",
  U9: "HTML in place of the answer to a write",
  U10: "207 that lacks items, doubles them, or has them in another order",
  U11: "statuses of batch items as text",
  U12: "an externalid that is unique at the source",
  U13: "batches refused as a whole, or failing, for one bad record",
  U14: "records of a batch that fail for a moment",
  U15: "days between two runs, with calls left open",
  U16: "others who change the same records meanwhile",
  U17: "externalids that others have given before",
  U18: "records that the source refuses",
  U19: "updates and cancels, several for one record",
  U20: "batches smaller than documented, or none at all",
  U21: "rows inserted by SQL, sent by a service",
  U22: "two pushers at once",
  U23: "a source that fails every write for a while",
  U24: "401, 403 and redirects for writes"
} as const

export type PushClass = keyof typeof pushClasses

export const isOfPushes = (name: string): name is PushClass => name in pushClasses

/** What counts as a race or a crash: faults are told by these names. */
export const isRaceOrCrash = (fired: string): boolean =>
  /^(?:(?:C1|C2|C3|D1|D3|D8|U2|U3|U4|U7|U15|U22) |U8 (?:not )?done)/.test(fired)
