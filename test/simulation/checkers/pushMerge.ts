/**
 * P4: no work of other people is lost. An update changes its own field only, and never a value that other people
 * changed since it was read.
 */
import type { Read } from "../world/WriteNetwork.ts"
import { carries, type PushCheckerOf } from "./PushChecker.ts"

export const pushMerge: PushCheckerOf = ({ plan, planned, meddlings, reads, sendings, effects, source }) => ({
  name: "push merge",
  holds:
    "P4: an update changes the fields that it names; what other people changed in these since the read is not overwritten; updates of a record are applied in the order given",
  done: ({ at, sending, changes }) => {
    if (sending.method !== "PATCH") return null
    const one = planned.find(
      ({ company, resource, sets }) =>
        company === sending.company &&
        resource === sending.resource &&
        sets !== null &&
        (sending.body ?? "").includes(`"${sets.value}"`)
    )
    if (one === undefined) return `PATCH ${sending.path} sets a value that was never requested: ${sending.body}`
    const { field, value } = one.sets!
    for (const { version, before } of changes) {
      const where = `${one.company}/${one.resource} ${version.id}`
      if (version.values[field] !== value)
        return `${where}: ${field} is ${String(version.values[field])} and not ${value}`
      const names = new Set([...Object.keys(version.values), ...Object.keys(before?.values ?? {})])
      for (const name of names) {
        if (name === field || name === "lastchangedate" || name.startsWith("_")) continue
        if (String(version.values[name] ?? null) !== String(before?.values[name] ?? null))
          return `${where}: an update of ${field} has changed ${name}`
      }
      // Later rows of one record must be written later.
      const later = planned.find(
        (other) =>
          other.number > one.number &&
          other.operation === "update" &&
          other.company === one.company &&
          other.resource === one.resource &&
          other.externalid === one.externalid &&
          other.recordId === one.recordId &&
          effects.some(
            ({ sending: sent }) =>
              sent !== sending && sent.method === "PATCH" && (sent.body ?? "").includes(`"${other.sets!.value}"`)
          )
      )
      if (later !== undefined)
        return `${where}: ${value} was written after ${later.sets!.value}, which was planned later`
      if (sending.ifMatch === null) {
        // If the source gives no version, this cannot be detected.
        const hasVersion = plan.dialect["etag"] === true || version.table.resource.field.has("lastchangedate")
        if (hasVersion) return `${where}: updated without the version that is meant`
        continue
      }
      const isOfRecord = ({ company, path }: Read) => company === sending.company && path.split("?")[0] === sending.path
      const first = sendings.find((sent) => sent.company === sending.company && carries(sent, one))!
      // The read before the change was first sent. A process that died before that has decided nothing.
      const looked = reads.findLast((read) => isOfRecord(read) && read.at <= first.at)
      if (looked === undefined) return `${where}: updated, and no process had read it before`
      const lost = meddlings.find(
        (other) =>
          other.company === one.company &&
          other.resource === one.resource &&
          other.id === version.id &&
          other.field === field &&
          other.at > looked.at &&
          other.at < at
      )
      if (lost !== undefined)
        return `${where}: another person set ${field} to ${lost.value} after it was read, and it is overwritten with ${value}`
    }
    return null
  },
  pushed: () => {
    // The last value that other people wrote stays, unless a push wrote after it.
    for (const { company, resource, id, field, value, at } of meddlings) {
      if (
        meddlings.some(
          (other) =>
            other.company === company &&
            other.resource === resource &&
            other.id === id &&
            other.field === field &&
            other.at > at
        )
      )
        continue
      const isOurs = effects.some(
        (effect) =>
          effect.at > at &&
          effect.sending.company === company &&
          effect.sending.resource === resource &&
          effect.changes.some(({ version }) => version.id === id)
      )
      if (isOurs) continue
      const state = source.state(company, resource).find((text) => new RegExp(`"id":${id}[,}]`).test(text))
      if (state !== undefined && !state.includes(`"${field}":${value}`))
        return `${company}/${resource} ${id}: another person set ${field} to ${value}, and the value is gone`
    }
    return null
  }
})
