/**
 * The events that a commit fires (H-01, H-23).
 *
 * Promise: every record whose shown content a commit changed fires once: `cancelled` when it was cancelled or removed,
 * `created` when it is new, else `updated`. `posted` is fired in addition when the record was posted. A parent that a
 * write changes is a record of the commit like any other. No resource name appears here.
 */
import { isPostable } from "../../catalogue/events.ts"
import type { EventVerb } from "../../catalogue/events.ts"
import type { Renderer } from "../store/render.ts"
import type { Change } from "../store/Store.ts"
import type { Version } from "../store/Table.ts"

const isPosted = (version: Version | undefined): boolean => (version?.values["voucherid"] ?? null) !== null

/** Whether readers see a difference; a new lastchangedate is one. */
const isVisible = (before: Version | undefined, after: Version, renderer: Renderer): boolean =>
  before === undefined ||
  after.table.resource.field.has("lastchangedate") ||
  after.custom !== before.custom ||
  renderer.render(before) !== renderer.render(after)

const changeVerb = ({ op, before, version }: Change, renderer: Renderer): EventVerb | null => {
  if (op === "insert") return "created"
  if (op === "delete") return version.cancelled ? null : "cancelled"
  if (version.cancelled && before?.cancelled === false) return "cancelled"
  return isVisible(before, version, renderer) ? "updated" : null
}

export const verbsOf = (change: Change, renderer: Renderer): ReadonlyArray<EventVerb> => {
  const { op, before, version } = change
  const verb = changeVerb(change, renderer)
  const isPosting =
    op !== "delete" && isPostable(version.table.resource) && isPosted(version) && !(op === "update" && isPosted(before))
  return [...(verb === null ? [] : [verb]), ...(isPosting ? (["posted"] as const) : [])]
}
