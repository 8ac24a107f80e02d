/**
 * Items of project templates: TEAMPROJECTTEMPLATEITEMS-01..18. parentitem is read as the title of the item above, whose
 * length it has. The filter title is exact, description is partial.
 */
import {
  boolean,
  cancel,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  money,
  pair,
  string,
  text,
  values
} from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { taskPriorities } from "./teamprojectrecurringtasks.ts"

export const teamprojecttemplateitems = resource({
  path: "teamprojecttemplateitems",
  area: "projects",
  purpose: "milestones and tasks of a project template",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    pair("teamprojecttemplate", "teamprojecttemplates", { by: "name", length: 100, note: "template by id or name" }),
    pair("parentitem", "teamprojecttemplateitems", { by: "title", length: 255, note: "item above, by id or title" }),
    integer("itemtype", { typed: false, values: values({ 0: "milestone", 1: "task" }) }),
    string("title", 255),
    text("description"),
    integer("priority", { typed: false, values: taskPriorities }),
    money("estimatedhours", { dp: 6 }),
    integer("offsetdays", { typed: false, note: "days after project start" }),
    integer("durationdays", { typed: false, note: "sets due date" }),
    boolean("assignrole", { note: "assign by project role" }),
    integer("sortorder", { typed: false, note: "lower first" }),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    externalid()
  ],
  filters: [exact("title"), partial("description")],
  modifiedSince: true,
  key: { field: "title", unique: false },
  feature: "projects"
})
