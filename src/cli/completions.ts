/**
 * `tributary completions`: the script by which a shell completes commands, flags, resources and companies.
 *
 * Promise: the script is complete: completing a word starts no program. Resources and companies are those of the
 * configuration when it was printed. A configuration that cannot be read is no failure: the script then has the resources
 * of the catalogue and no companies.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
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

const choices = (
  values: ReadonlyArray<string>
): { readonly _tag: "Choice"; readonly values: ReadonlyArray<string> } => ({
  _tag: "Choice",
  values
})

/** The commands with these names as choices. */
const withNames = (
  command: Completions.CommandDescriptor,
  { resources, companies }: Names
): Completions.CommandDescriptor => ({
  ...command,
  flags: command.flags.map((flag) =>
    flag.name === "company" && flag.type._tag === "String" && companies.length > 0 && command.name !== "init"
      ? { ...flag, type: choices(companies) }
      : flag
  ),
  arguments: command.arguments.map((argument) =>
    argument.name === "resource" && argument.type._tag === "String" && resources.length > 0
      ? { ...argument, type: choices(resources) }
      : argument
  ),
  subcommands: command.subcommands.map((one) => withNames(one, { resources, companies }))
})

const known = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const settings = yield* Effect.option(configuration(file))
  if (Option.isNone(settings)) {
    const { catalogue } = yield* Source
    return { resources: [...catalogue.resources.keys()].sort(), companies: [] }
  }
  const catalogue = yield* catalogueOf(settings.value).pipe(Effect.orElseSucceed(() => null))
  return {
    resources: catalogue === null ? [] : [...catalogue.resources.keys()].sort(),
    companies: settings.value.companies.map(({ name }) => name)
  }
})

const script = Effect.fnUntraced(function* (
  shell: (typeof shells)[number],
  file: Option.Option<string>
): Effect.fn.Return<string, never, Source> {
  const names = yield* known(file)
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
