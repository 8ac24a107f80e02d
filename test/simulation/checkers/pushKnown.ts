/** P2: the result of every record is known in the end, and it is true. */
import type { PlannedRow } from "../world/People.ts"
import { carries, type OutboxRow, type PushCheckerOf, type PushSetting, rowOf, describeRow } from "./PushChecker.ts"

/** Codes that mean a failure of the source, not a rejection of a record. */
const failures = new Set(["server_error", "rate_limited", "unclear"])
/** Maximum number of attempts for a record that fails alone. */
const attemptsMax = 5

/** The create of the record that a change is about; undefined when no push creates it. */
const createOf = ({ planned }: PushSetting, { company, resource, externalid }: PlannedRow): PlannedRow | undefined =>
  externalid === null
    ? undefined
    : planned.find(
        (other) =>
          other.operation === "create" &&
          other.company === company &&
          other.resource === resource &&
          other.externalid === externalid
      )

/** Whether the source has applied a change and shows it: other people have not set the field again. */
const isApplied = ({ effects, meddlings }: PushSetting, one: PlannedRow, { recordId }: OutboxRow): boolean =>
  effects.some(
    ({ sending, changes }) => carries(sending, one) && changes.some(({ version }) => String(version.id) === recordId)
  ) &&
  !meddlings.some(
    ({ company, resource, id, field }) =>
      company === one.company && resource === one.resource && String(id) === recordId && field === one.sets?.field
  )

/** The false part of a record's reported result; null when the result is true. `requests` is how many it was in. */
const lie = (
  setting: PushSetting,
  one: PlannedRow,
  row: OutboxRow,
  rows: ReadonlyArray<OutboxRow>,
  requests: number
): string | null => {
  const { expectation } = one
  const { effects, meddlings, source } = setting
  const said = `${row.state} ${row.outcome ?? row.code ?? ""}`
  const inserts = effects.flatMap(({ sending, changes }) =>
    sending.company === one.company && sending.resource === one.resource && sending.method === "POST"
      ? changes.filter(({ op, version }) => op === "insert" && version.values["externalid"] === one.externalid)
      : []
  )
  if (one.operation === "create") {
    const created = inserts[0]?.version.id
    if (row.outcome === "created") {
      if (created === undefined) return "called created, and the source never created it"
      if (row.recordId !== String(created)) return `called ${row.recordId}, and it is ${created}`
    } else if (row.state === "rejected" && created !== undefined) {
      return `called rejected (${row.code}: ${row.reason}), and the source has created it as ${created}`
    }
  }
  // It failed again and again, each time temporarily: a person decides. A request whose key became too old before it was
  // sent counts too.
  if (row.state === "rejected" && failures.has(row.code ?? "")) {
    if (requests < attemptsMax) return `${said} after ${requests} attempts: ${row.reason}`
    return one.operation !== "create" && isApplied(setting, one, row) ? `called ${said}, and a push has done it` : null
  }
  if (row.state === "rejected" && one.operation !== "create") {
    // A record that was never created cannot be changed.
    const first = createOf(setting, one)
    if (first !== undefined && rowOf(rows, first)?.state === "rejected") return null
  }
  switch (expectation.kind) {
    case "created":
      if (row.outcome === "created") return null
      // After a lookup, the engine cannot know that its own request created the record.
      return row.outcome === "adopted" && inserts.length === 1 ? null : `${said}: ${row.reason}`
    case "adopted": {
      if (row.outcome !== "adopted") return `${said}: ${row.reason}`
      if (row.recordId !== String(expectation.id)) return `adopted as ${row.recordId}, and it is ${expectation.id}`
      const named =
        row.differences === null
          ? []
          : (JSON.parse(row.differences) as ReadonlyArray<{ field: string }>).map(({ field }) => field)
      const missing = expectation.differing.find((field) => !named.includes(field))
      if (missing !== undefined) return `adopted, and the difference in ${missing} is not reported`
      const isMeddled = meddlings.some(
        ({ company, resource, id }) => company === one.company && resource === one.resource && id === expectation.id
      )
      const tooMany = named.find((field) => !expectation.differing.includes(field))
      return tooMany === undefined || isMeddled ? null : `adopted, and reported to differ in ${tooMany}, which is equal`
    }
    case "refused":
      if (row.state !== "rejected") return said
      return expectation.codes.includes(row.code ?? "")
        ? null
        : `rejected with ${row.code} (${row.reason}), not ${expectation.codes.join(" or ")}`
    case "changed": {
      if (row.state === "rejected" && row.code === "conflict") {
        const isTrue = meddlings.some(
          ({ company, resource, id, field }) =>
            company === one.company &&
            resource === one.resource &&
            String(id) === idOf(setting, one, row) &&
            field === one.sets!.field
        )
        return isTrue ? null : `rejected as a conflict, and no other person has changed ${one.sets!.field}`
      }
      if (row.state === "rejected") return `${said}: ${row.reason}`
      return row.outcome === "updated" ? null : said
    }
    case "cancelled": {
      if (row.outcome !== "cancelled" && row.outcome !== "unchanged") return `${said}: ${row.reason}`
      const id = idOf(setting, one, row)
      const state = source.state(one.company, one.resource).find((text) => new RegExp(`"id":${id}[,}]`).test(text))
      return state !== undefined && /"cancel":(?:true|1)\b/.test(state)
        ? null
        : `called ${row.outcome}, and it is not cancelled`
    }
  }
}

/** The id of the record that is meant, by the source's history. */
const idOf = ({ source }: PushSetting, one: PlannedRow, row: OutboxRow): string | null => {
  if (one.recordId !== null) return one.recordId
  const texts = source
    .state(one.company, one.resource)
    .filter((text) => text.includes(`"externalid":"${one.externalid}"`))
  const id = texts.length === 1 ? /"id":(\d+)/.exec(texts[0]!)?.[1] : undefined
  return id ?? row.recordId
}

/** The states of rows, by the counts that a push reports. */
const stateOf: Readonly<Record<string, string>> = { waiting: "pending", sending: "in_flight" }

/** The counts of rows that a push has not resolved. */
const unresolved = new Set(["waiting", "sending"])

export const pushKnown: PushCheckerOf = (setting) => {
  /** The requests that each row was in, by the number of the row. */
  const requests = new Map<string, Set<string>>()
  return {
    name: "push known",
    holds: "P2: in the end every record is done or rejected, with an id or a reason that is true at the source",
    committed: ({ rows }) => {
      for (const { number, call } of rows) {
        if (call !== null) requests.set(number, (requests.get(number) ?? new Set()).add(call))
      }
      return null
    },
    pushed: ({ rows, calls, said, unfinished }) => {
      for (const one of setting.planned) {
        const row = rowOf(rows, one)
        if (row === undefined) return `${describeRow(one)}: it is not in the outbox`
        if (row.state !== "done" && row.state !== "rejected") return `${describeRow(one)}: it is still ${row.state}`
        const wrong = lie(setting, one, row, rows, requests.get(row.number)?.size ?? 0)
        if (wrong !== null) return `${describeRow(one)}: ${wrong}`
      }
      if (rows.length !== setting.planned.length)
        return `${setting.planned.length} records were planned and ${rows.length} are in the outbox`
      const open = calls.find(({ state }) => state === "open")
      if (open !== undefined) return `request ${open.number} is left open`
      const kept = calls.find(({ body }) => body !== null)
      if (kept !== undefined) return `request ${kept.number} is ${kept.state} and keeps its body`
      for (const [index, { push, counts }] of said.entries()) {
        // The same file pushed again joins the push, and may add records that another push had left rejected, or had not sent.
        const isLast = !said.slice(index + 1).some((later) => later.push === push)
        const own = rows.filter((row) => row.push === push)
        for (const [what, count] of Object.entries(counts)) {
          const matching = own.filter(({ state, outcome, differences }) =>
            what === "different" ? differences !== null : (stateOf[what] ?? what) === (outcome ?? state)
          ).length
          const isTrue = isLast ? matching === count : matching >= count || what === "rejected" || unresolved.has(what)
          if (!isTrue) return `push ${push} reported ${count} ${what}, and ${matching} are`
        }
      }
      return unfinished.length === 0 ? null : `push ${unfinished[0]} is not finished`
    }
  }
}
