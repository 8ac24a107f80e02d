/** Statements on refetch requests: children of changed parents that are to be read again. */
import { requestSql } from "../land/Refetch.ts"
import * as Statement from "../postgres/Statement.ts"

/** Resources of the company with pending refetch requests. */
export const resources = Statement.make({
  name: "list the resources with refetch requests",
  params: ["int8"],
  columns: { resource: "text" },
  text: "select distinct resource from tributary.refetch_requests where company_id = $1"
})

/** Requests the records whose field has one of these values, as a change of their parents does. */
export const request = Statement.make({
  name: "request children of changed parents",
  params: ["int8", "text", "text", "text"],
  text: requestSql(
    `select $1::bigint, $2::text, $3::text, value, tributary.now() from jsonb_array_elements_text($4::text::jsonb) as requested(value)`
  )
})

/** The values whose requests are not fulfilled yet. */
export const pending = Statement.make({
  name: "read the refetch requests of a field",
  params: ["int8", "text", "text"],
  columns: { value: "text" },
  text: "select value from tributary.refetch_requests where company_id = $1 and resource = $2 and field = $3"
})
