/** The mistakes of a configuration, one line each, with file, line and the allowed values. */
import * as Data from "effect/Data"

export class ConfigurationError extends Data.TaggedError("ConfigurationError")<{
  readonly problems: ReadonlyArray<string>
}> {
  override get message(): string {
    return this.problems.join("\n")
  }
}
