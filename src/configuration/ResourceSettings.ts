/** The settings of single resources. */
import * as Schema from "effect/Schema"
import { millisecondsOf } from "../connector/Instant.ts"
import { between, choice, filled, pattern, ruled, section, setting } from "./SettingValues.ts"

/** The path of a list below the base address; `*` is any text. */
export const resourcePath = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9*][A-Za-z0-9_*-]*(?:\/[A-Za-z0-9*][A-Za-z0-9_*-]*)*$/u)
)

const fieldPatterns = Schema.Array(
  Schema.String.check(Schema.isNonEmpty({ message: "Expected the name of a field, or a pattern with *" }))
)

const Mask = section({
  shown: setting(
    "text",
    Schema.String.check(Schema.isNonEmpty({ message: "Expected a text" })),
    "the text that is kept",
    "***"
  ),
  keepLast: setting(
    "keep_last",
    between(0, 100),
    "how many of the last characters of a longer free text are kept after it",
    0
  )
})

const custom = {
  area: setting(
    "area",
    pattern(/^[a-z0-9_]{1,64}$/u, "Expected lower-case letters, digits and _ (at most 64)"),
    "the area of its scope, so that a token without it is reported before a request; default: unknown"
  ),
  modifiedSince: setting(
    "modifiedsince",
    Schema.Boolean,
    "whether its list offers modifiedsince and its records carry lastchangedate, without which every sync reads all of it",
    false
  ),
  cancel: setting(
    "cancel",
    Schema.Boolean,
    "whether its records carry the flag cancel and its list takes cancel=any",
    false
  ),
  key: setting("key", Schema.String, "the text field by which people know a record")
}

/** A resource that the catalogue does not have. */
export const CustomResource = section(custom)

export const ResourceSettings = section({
  ...custom,
  ignoreFields: setting(
    "ignore_fields",
    Schema.Array(filled("Expected the name of a field")),
    "fields (also custom_fields as a whole) whose change alone makes no new version: a row keeps their values until " +
      "another field changes, and verify does not compare them",
    []
  ),
  since: setting(
    "since",
    ruled("a day, YYYY-MM-DD", (day) =>
      millisecondsOf(`${day}T00:00:00Z`) === undefined ? "Expected a day, for example 2025-01-01" : true
    ),
    "a day (UTC): a first load and every full scan read only the records that changed on it or later; the list must offer " +
      "modifiedsince. Earlier rows stay, and verify does not compare them. Records that an event or a push names are landed " +
      "whenever they changed. After a change of the day every record since is read again; default: all records"
  ),
  where: setting(
    "where",
    Schema.Record(
      Schema.String,
      choice([Schema.String, Schema.Int, Schema.Boolean], "Expected a text, an integer, true or false")
    ),
    "values of filters that its list offers, by field: only records that pass all of them are kept, exactly or, where the " +
      "filter is partial, with the text in any case. A record that no longer passes becomes a tombstone. Records of it are " +
      "not pushed. After a change every record is read again; default: all records",
    {}
  ),
  exclude: setting(
    "exclude",
    fieldPatterns,
    "fields (names, or patterns with *; also custom_fields as a whole) whose values are never stored",
    []
  ),
  hash: setting(
    "hash",
    fieldPatterns,
    "fields of which the warehouse keeps a keyed hash (HMAC-SHA-256 with TRIBUTARY_PRIVACY_KEY): the same value has the same hash",
    []
  ),
  mask: setting(
    "mask",
    Schema.Record(Schema.String, Mask),
    "fields of which the warehouse keeps a fixed text, and the last characters of a free text where keep_last names their number",
    {}
  )
})
