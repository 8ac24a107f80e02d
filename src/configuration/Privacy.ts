/** The privacy rules of the configuration, by resource. */
import * as Redacted from "effect/Redacted"
import type { PatternRule } from "../catalogue/Protection.ts"
import * as FieldRules from "../connector/FieldRules.ts"
import { keyLengthMin } from "./Companies.ts"
import type { Inputs } from "./Inputs.ts"

/** The variable with the key of hashed fields. Every process on a warehouse needs the same one. */
export const privacyKeyVariable = "TRIBUTARY_PRIVACY_KEY"

/** The rules of each entry of `resources`, whose path may be a pattern. */
export const privacyOf = ({
  problems,
  settings,
  variable
}: Inputs): ReadonlyMap<string, ReadonlyArray<PatternRule>> => {
  const key = variable(privacyKeyVariable)
  const advice = `make a key of at least ${keyLengthMin} characters with: openssl rand -base64 32`
  const hashing = Object.entries(settings.resources).filter(([, { hash }]) => hash.length > 0)
  if (hashing.length > 0 && key === undefined) {
    problems.push(`resources.${hashing[0]![0]}.hash: ${privacyKeyVariable} is not set; ${advice}`)
  } else if (key !== undefined && key.length < keyLengthMin) {
    problems.push(`${privacyKeyVariable} has fewer than ${keyLengthMin} characters; ${advice}`)
  }
  const hash = FieldRules.hash(Redacted.make(key ?? "", { label: privacyKeyVariable }))
  return new Map(
    Object.entries(settings.resources).map(([path, one]) => [
      path,
      [
        ...one.exclude.map((pattern) => ({ pattern, rule: FieldRules.exclude })),
        ...one.hash.map((pattern) => ({ pattern, rule: hash })),
        ...Object.entries(one.mask).map(([pattern, { shown, keepLast }]) => ({
          pattern,
          rule: FieldRules.mask(shown, keepLast)
        }))
      ]
    ])
  )
}
