/**
 * Tasks of a project: inferred (L3, L4) from teamprojecttaskid. Project, status and user are the pairs of the
 * documented recurring task.
 */
import { date, id, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const teamprojecttasks = resource({
  path: "teamprojecttasks",
  area: "projects",
  purpose: "tasks of a project",
  basis: "inferred",
  operations: "L C R U D",
  fields: [
    id(),
    pair("teamproject", "teamprojects", { by: "code", length: 30, note: "project by id or code" }),
    string("title", 255),
    pair("status", "teamprojectstatuses", { by: "name", length: 100, note: "status by id or name" }),
    pair("assignuser", "users", { by: "login", length: 50, note: "user by id or login name" }),
    date("duedate"),
    commonFields()
  ],
  filters: [exact("teamprojectid", "statusid", "assignuserid"), partial("title")],
  modifiedSince: true,
  feature: "projects"
})
