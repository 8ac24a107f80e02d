/**
 * `tributary completions`: the script by which a shell completes commands, flags, resources and companies.
 *
 * Promise: the script is complete: completing a word starts no program. Resources and companies are those of the
 * configuration when it was printed. A configuration that cannot be read is no failure: the script then has the resources
 * of the catalogue and no companies.
 */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { config, configuration, withExamples } from "./Command.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

const executable = "tributary"
const shells = ["bash", "zsh", "fish", "powershell"] as const

/** The names that complete the arguments and flags of the commands. */
interface Names {
  readonly resources: ReadonlyArray<string>
  readonly companies: ReadonlyArray<string>
}

/** The parameters; the one with this name completes these values. */
const withChoices = <A extends Completions.FlagDescriptor | Completions.ArgumentDescriptor>(
  parameters: ReadonlyArray<A>,
  name: string,
  values: ReadonlyArray<string>
): ReadonlyArray<A> =>
  parameters.map((one) =>
    one.name === name && one.type._tag === "String" && values.length > 0
      ? { ...one, type: { _tag: "Choice", values } }
      : one
  )

/** The commands with these names as choices. `init` names companies that do not exist yet. */
const withNames = (command: Completions.CommandDescriptor, names: Names): Completions.CommandDescriptor => ({
  ...command,
  flags: command.name === "init" ? command.flags : withChoices(command.flags, "company", names.companies),
  arguments: withChoices(command.arguments, "resource", names.resources),
  subcommands: command.subcommands.map((one) => withNames(one, names))
})

const readNames = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const { catalogue } = yield* Source
  const settings = yield* Effect.orElseSucceed(configuration(file), () => ({ companies: [], resources: [] }))
  const { resources } = yield* Effect.orElseSucceed(catalogueOf(settings), () => catalogue)
  return { resources: [...resources.keys()].sort(), companies: settings.companies.map(({ name }) => name) }
})

const script = Effect.fnUntraced(function* (
  shell: (typeof shells)[number],
  file: Option.Option<string>
): Effect.fn.Return<string, never, Source> {
  const names = yield* readNames(file)
  const { rootFor } = yield* Effect.promise(() => import("./Program.ts"))
  const root = yield* rootFor([])
  const text = Completions.generate(executable, shell, withNames(Completions.fromCommand(root), names))
  // The heading of the script names the built-in flag, whose script has no names; it must name this command.
  return text.replaceAll(`${executable} --completions`, `${executable} completions`)
})

export const command = Command.make(
  "completions",
  {
    shell: Argument.Literals("shell", shells).pipe(Argument.withDescription("The shell that completes")),
    config
  },
  Effect.fn(function* (flags) {
    yield* Output.print(yield* script(flags.shell, flags.config))
  })
).pipe(
  withExamples({
    "tributary completions bash > ~/.local/share/bash-completion/completions/tributary":
      "For bash (or, for this shell only: source <(tributary completions bash))",
    'tributary completions zsh > "${fpath[1]}/_tributary"': "For zsh: any folder of $fpath, then begin a new shell",
    "tributary completions fish > ~/.config/fish/completions/tributary.fish": "For fish"
  })
)
