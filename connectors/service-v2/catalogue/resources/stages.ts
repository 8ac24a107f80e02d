/**
 * Stages: STAGES-01..14. No lastchangedate, so that there is no modifiedsince. code is no key (F-05); the filters name
 * and code are exact, description is partial.
 */
import { cancel, entrydate, externalid, id, integer, ref, string, text } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"

export const stages = resource({
  path: "stages",
  area: "setup",
  purpose: "stages that documents pass through",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    ref("stagetypeid", "stagetypes"),
    string("name", 100),
    string("code", 15),
    text("description"),
    string("autotrigger", 100, { note: "action code that advances a document into the stage" }),
    entrydate({ readOnly: true, typed: false }),
    cancel(),
    integer("sortorder", { typed: false }),
    externalid()
  ],
  filters: [exact("name", "code"), partial("description")]
})
