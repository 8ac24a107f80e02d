/** The Schema of an endpoint of the file, which gets the changes of the warehouse. */
import * as Schema from "effect/Schema"
import { batchMaxDefault, batchMaxMax, operations, retryHoursDefault } from "../delivery/Endpoint.ts"
import { address, between, pattern, positive, required, section, setting, variableName } from "./SettingValues.ts"

export const endpointName = pattern(/^[A-Za-z0-9_-]{1,64}$/u, "Expected letters, digits, _ or - (at most 64)")

const names = Schema.Array(Schema.String).check(Schema.isMinLength(1, { message: "Expected at least one name" }))

export const ChangeEndpoint = section({
  name: required("name", endpointName, "the name of the endpoint in output"),
  url: required("url", address, "the https address that gets the changes"),
  secretVariables: required(
    "secrets_env",
    Schema.Array(variableName).check(Schema.isMinLength(1, { message: "Expected at least one variable" })),
    "the environment variables (or .env entries) that hold its signing secrets (whsec_ and base64); a message has a signature of " +
      "each, so that two of them rotate the secret"
  ),
  company: setting("company", Schema.String, "the company whose changes are sent; default: all"),
  resources: setting("resources", names, "the resources whose changes are sent; default: all"),
  operations: setting(
    "operations",
    Schema.Array(Schema.Literals(operations)).check(
      Schema.isMinLength(1, { message: "Expected at least one operation" })
    ),
    "the operations that are sent; default: all"
  ),
  fields: setting("fields", names, "an update is sent only if one of these fields changed; default: every update"),
  batchMax: setting(
    "batch",
    between(1, batchMaxMax),
    "changes of one message at most; above 1, a message has a list of changes",
    batchMaxDefault
  ),
  allowPrivate: setting("allow_private", Schema.Boolean, "whether the address may be private, and plain http", false),
  retryHours: setting(
    "retry_hours",
    positive,
    "how long a failed change is sent again, and an endpoint that accepts nothing is tried",
    retryHoursDefault
  )
})
