/** The version of the program. */
import * as Context from "effect/Context"

export const Version = Context.Reference<string>("tributary/cli/Version", { defaultValue: () => "unknown" })
