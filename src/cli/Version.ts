/** The program's version, for whoever tells it. */
import * as Context from "effect/Context"

export const Version = Context.Reference<string>("tributary/cli/Version", { defaultValue: () => "unknown" })
