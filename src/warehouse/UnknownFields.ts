/** The writes of `tributary.unknown_fields`: sightings of a landing, and promotions to columns. */
import * as Statement from "../postgres/Statement.ts"
import { literal } from "./Identifier.ts"

export const noteStatement = Statement.make({
  name: "note unknown fields of",
  params: ["int8", "text", "int8", "text[]", "int8[]", "text[]", "bool[]"],
  columns: { field: "text", fresh: "bool", grew: "bool" },
  // Kinds as one text each, since arrays of arrays must have equal lengths.
  text: `with sent as (
       select field, times, string_to_array(kinds, ',') as kinds, inferred
         from unnest($4::text[], $5::bigint[], $6::text[], $7::boolean[]) as s (field, times, kinds, inferred)), before as (
       select field, sample_types from tributary.unknown_fields
        where company_id = $1 and resource = $2 and field in (select field from sent)), noted as (
       insert into tributary.unknown_fields as u
         (company_id, resource, field, first_seen_at, last_seen_at, times, type_mismatches, sample_types, run_id)
       select $1, $2, field, tributary.now(), tributary.now(), case when inferred then 0 else times end,
              case when inferred then times else 0 end, kinds, $3 from sent
       on conflict (company_id, resource, field) do update set
         last_seen_at = excluded.last_seen_at, times = u.times + excluded.times, type_mismatches = u.type_mismatches + excluded.type_mismatches,
         sample_types = array(select distinct unnest(u.sample_types || excluded.sample_types) order by 1))
     select s.field, b.field is null as fresh, not coalesce(b.sample_types @> s.kinds, false) as grew
       from sent s left join before b using (field)`
})

/** The statement that marks fields of a resource as promoted to columns. */
export const markPromoted = (resource: string, promotions: ReadonlyArray<{ readonly field: string }>): string =>
  `update tributary.unknown_fields set promoted_at = tributary.now() where resource = ${literal(resource)} ` +
  `and promoted_at is null and field in (${promotions.map(({ field }) => literal(field)).join(", ")})`
