/** Tags on project tasks: TEAMPROJECTTASKTAGS-01..09. */
import { cancel, entrydate, externalid, id, lastchangedate, pair, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"

export const teamprojecttasktags = resource({
  path: "teamprojecttasktags",
  area: "projects",
  purpose: "tags on project tasks",
  basis: "documented",
  operations: "L C B R",
  fields: [
    id(),
    ref("teamprojecttaskid", "teamprojecttasks"),
    pair("teamprojecttag", "teamprojecttags", { by: "name", length: 100, note: "tag by id or name" }),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    externalid()
  ],
  filters: [exact("teamprojecttaskid")],
  modifiedSince: true,
  feature: "projects"
})
