/**
 * Recurring project tasks: TEAMPROJECTRECURRINGTASKS-01..23. The filter title is exact, description is partial.
 * Hours are typed as money. The ranges of dayofweek and dayofmonth (I-28) are no closed sets of the documents.
 */
import {
  boolean,
  cancel,
  date,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  money,
  pair,
  ref,
  string,
  text,
  values
} from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"

/** Shared with teamprojecttemplateitems ("as above"). */
export const taskPriorities = values({ 0: "low", 1: "normal", 2: "high", 3: "critical" })

export const teamprojectrecurringtasks = resource({
  path: "teamprojectrecurringtasks",
  area: "projects",
  purpose: "project tasks that a generator makes again and again",
  basis: "documented",
  operations: "L C B R U",
  fields: [
    id(),
    pair("teamproject", "teamprojects", { by: "code", length: 30, note: "project by id or code" }),
    ref("teamprojectmilestoneid", "teamprojectmilestones"),
    string("title", 255),
    text("description"),
    pair("teamprojectstatus", "teamprojectstatuses", { by: "name", length: 100, note: "status by id or name" }),
    integer("priority", { typed: false, values: taskPriorities }),
    money("estimatedhours", { dp: 6 }),
    pair("assignuser", "users", { by: "login", length: 50, note: "user by id or login name" }),
    integer("frequency", {
      typed: false,
      values: values({ 0: "daily", 1: "weekly", 2: "monthly", 3: "custom every intervaldays days" })
    }),
    integer("intervaldays", { typed: false }),
    integer("dayofweek", { typed: false, note: "0 = Sunday" }),
    integer("dayofmonth", { typed: false }),
    date("nextrundate", { typed: false }),
    date("enddate", { typed: false, note: "empty runs indefinitely" }),
    date("lastrundate", { readOnly: true, typed: false, note: "maintained by the generator" }),
    boolean("enabled"),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    externalid()
  ],
  filters: [exact("title"), partial("description"), exact("teamprojectid")],
  modifiedSince: true,
  feature: "projects"
})
