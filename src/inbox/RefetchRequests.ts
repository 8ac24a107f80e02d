/** Queries of refetch requests: children of changed parents that are to be read again. */
import { requestSql } from "../land/Refetch.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

/** Requests the records whose field has one of these values, as a change of their parents does. */
export const request = Statement.make({
  name: "request children of changed parents",
  params: ["int8", "text", "text", "text"],
  text: requestSql(
    `select $1::bigint, $2::text, $3::text, value, tributary.now() from jsonb_array_elements_text($4::text::jsonb) as requested(value)`
  )
})

/** The values whose requests are not fulfilled yet. */
export const pending = (company_id: bigint, resource: string, field: string) =>
  Query.run(
    control
      .selectFrom("tributary.refetch_requests")
      .select("value")
      .where((is) => is.and({ company_id, resource, field }))
  )
