/** The Schema of a rule about the records in the file. */
import * as Schema from "effect/Schema"
import { severities } from "../invariants/Invariant.ts"
import { filled, pattern, required, section, setting } from "./SettingValues.ts"

export const InvariantRule = section({
  name: required(
    "name",
    pattern(/^[a-z_][a-z0-9_]{0,62}$/u, "Expected a lower-case name of letters, digits and _ (at most 63)"),
    "the name of the rule; that of a built-in rule replaces it"
  ),
  severity: setting("severity", Schema.Literals(severities), "the severity of its alert", "warning"),
  statement: setting(
    "statement",
    filled("Expected a sentence"),
    "the rule in one line; default: the first line of the comment at the beginning of its SQL, else its name"
  ),
  sql: setting(
    "sql",
    Schema.String,
    "a query that answers company_id, resource, id and detail (a sentence) of each record that violates the rule; " +
      "{{path}} is the table of a resource"
  ),
  file: setting("file", Schema.String, "a file with that query, instead of sql"),
  resources: setting(
    "resources",
    Schema.Array(Schema.String),
    "resources whose changes make it evaluated, beside those that the query names as {{path}}",
    []
  )
})
