/**
 * Reminders of project tasks: TEAMPROJECTREMINDERS-01..13. The row shows no U, but status moves from pending to done by
 * a write: U is inferred (I-02).
 */
import { boolean, cancel, date, entrydate, externalid, id, lastchangedate, pair, ref, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"

export const teamprojectreminders = resource({
  path: "teamprojectreminders",
  area: "projects",
  purpose: "reminders of project tasks",
  basis: "documented",
  operations: "L C B R U",
  fields: [
    id(),
    pair("genuser", "users", { by: "login", length: 50, note: "user by id or login name" }),
    ref("teamprojecttaskid", "teamprojecttasks"),
    date("reminderdate", { typed: false }),
    string("note", 255),
    boolean("status", { note: "false pending, true done" }),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    externalid()
  ],
  filters: [exact("status", "genuserid", "teamprojecttaskid")],
  modifiedSince: true,
  feature: "projects"
})
