/**
 * SQL for the text of a JSON object as Postgres prints it from `jsonb`, without nulls, and without making the `jsonb`:
 * that takes a third of the time.
 *
 * Promise: the text is that of `jsonb_strip_nulls(jsonb_build_object(…))::text`, byte for byte: members in the order of the
 * length of their names and then of their bytes, strings escaped alike. No setting of the session changes it.
 */
import { literal } from "../warehouse/Identifier.ts"

export interface Member {
  readonly name: string
  /** Its value in SQL. A null is no member. */
  readonly value: string
  /**
   * How the value becomes text: `text` escapes it, `quoted` needs no escapes, `plain` is a number in SQL as in JSON;
   * `json` is any value that `to_jsonb` takes.
   */
  readonly kind: "text" | "quoted" | "plain" | "boolean" | "json"
}

/** Postgres takes at most 100 arguments to a function. */
const argumentsMax = 100

/** The order of members in `jsonb`. */
const inOrder = (one: Member, other: Member): number => {
  const [a, b] = [Buffer.from(one.name), Buffer.from(other.name)]
  return a.length - b.length || Buffer.compare(a, b)
}

const shown = ({ value, kind }: Member): string => {
  switch (kind) {
    case "text":
      return `to_json(${value})::text`
    case "quoted":
      return `'"' || ${value} || '"'`
    case "plain":
      return value
    case "boolean":
      return `${value}::text`
    case "json":
      return `nullif(jsonb_strip_nulls(to_jsonb(${value}))::text, 'null')`
  }
}

/** Text without separators; `concat` leaves nulls out. */
const concat = (parts: ReadonlyArray<string>): string => {
  if (parts.length <= argumentsMax) return `concat(${parts.join(", ")})`
  const chunks = Array.from({ length: Math.ceil(parts.length / argumentsMax) }, (_, at) =>
    concat(parts.slice(at * argumentsMax, (at + 1) * argumentsMax))
  )
  return concat(chunks)
}

/** The object with these members, whose names differ. */
export const objectText = (members: ReadonlyArray<Member>): string => {
  const parts = members
    .toSorted(inOrder)
    .map((member) => `${literal(`, ${JSON.stringify(member.name)}: `)} || ${shown(member)}`)
  return `'{' || substr(${concat(parts)}, 3) || '}'`
}
