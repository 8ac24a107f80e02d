/** P4: nobody's work is lost: a change touches its own field, and never what others have changed since it was looked at. */
import type { Read } from "../world/WriteNetwork.ts"
import { carries, type PushCheckerOf } from "./PushChecker.ts"

export const pushMerge: PushCheckerOf = ({ plan, wanted, meddlings, reads, sendings, effects, source }) => ({
  name: "push merge",
  holds:
    "P4: an update changes the fields that it names; what others changed in these meanwhile is not overwritten; one after the other, in the order given",
  done: ({ at, sending, changes }) => {
    if (sending.method !== "PATCH") return null
    const one = wanted.find(
      ({ company, resource, sets }) =>
        company === sending.company &&
        resource === sending.resource &&
        sets !== null &&
        (sending.body ?? "").includes(`"${sets.value}"`)
    )
    if (one === undefined) return `PATCH ${sending.path} sets what nobody wanted: ${sending.body}`
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
      // Later rows of one record come later.
      const later = wanted.find(
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
      if (later !== undefined) return `${where}: ${value} was written after ${later.sets!.value}, which was given later`
      if (sending.ifMatch === null) {
        // Where the source gives no version, nobody can tell.
        const hasVersion = plan.dialect["etag"] === true || version.table.resource.field.has("lastchangedate")
        if (hasVersion) return `${where}: updated without saying which version is meant`
        continue
      }
      const isOfRecord = ({ company, path }: Read) => company === sending.company && path.split("?")[0] === sending.path
      const first = sendings.find((sent) => sent.company === sending.company && carries(sent, one))!
      // The reading for which the change was first sent: whoever died before that has decided nothing.
      const looked = reads.findLast((read) => isOfRecord(read) && read.at <= first.at)
      if (looked === undefined) return `${where}: updated, and nobody had read it before`
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
        return `${where}: ${field} was ${lost.value} by somebody else since it was read, and is overwritten with ${value}`
    }
    return null
  },
  pushed: () => {
    // What others wrote last, and we did not write after it, stands.
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
        return `${company}/${resource} ${id}: ${field} was ${value} by somebody else and is gone`
    }
    return null
  }
})
