/**
 * Automations of a project: TEAMPROJECTAUTOMATIONS-01..15. enabled has no stated type and is read as boolean (F-15).
 */
import {
  boolean,
  cancel,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  pair,
  string,
  text,
  values
} from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"

export const teamprojectautomations = resource({
  path: "teamprojectautomations",
  area: "projects",
  purpose: "automations of a project: what happens when",
  basis: "documented",
  operations: "L C B",
  fields: [
    id(),
    pair("teamproject", "teamprojects", { by: "code", length: 30, note: "project by id or code" }),
    string("name", 200),
    integer("triggertype", {
      typed: false,
      values: values({
        0: "status changed",
        1: "task assigned",
        2: "due date reached",
        3: "due date approaching",
        4: "task created",
        5: "milestone completed",
        6: "priority changed"
      })
    }),
    text("triggervalue"),
    integer("actiontype", {
      typed: false,
      values: values({
        0: "change status",
        1: "reassign task",
        2: "set priority",
        3: "add tag",
        4: "send notification",
        5: "add comment"
      })
    }),
    text("actionvalue"),
    boolean("enabled", { typed: false }),
    integer("sortorder", { typed: false }),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    externalid()
  ],
  filters: [partial("name"), exact("teamprojectid")],
  modifiedSince: true,
  feature: "projects"
})
