/** What needs a person, as lines for `status` and as findings for `doctor`. */
import { kindTraits } from "../status/ProblemKinds.ts"
import * as Problems from "../status/Problems.ts"
import * as Output from "./Output.ts"

/** Groups that are listed for people. */
const shownMax = 20

/** What happened, in one line. */
export const messageOf = (group: Problems.ProblemGroup): string => {
  const { first, kind, since } = group
  const began = since === null ? "" : `, since ${since.toISOString().slice(0, 19)}Z`
  return `${kindTraits[kind].title} (${Output.shown(Problems.subjectOf(group))}): ${Output.shown(Problems.sentenceOf(first))}${began}`
}

/** What to do, with the command. */
export const remedyOf = ({ first }: Problems.ProblemGroup): string => Output.shown(Problems.stepOf(first))

/** Two lines for each group; nothing where there is none. */
export const problemLines = (problems: ReadonlyArray<Problems.Problem>): ReadonlyArray<string> => {
  const groups = Problems.grouped(problems)
  return groups.length === 0
    ? ["  nothing needs a person"]
    : [
        "  what needs a person:",
        ...groups
          .slice(0, shownMax)
          .flatMap((group) => [`    ${group.severity}: ${messageOf(group)}`, `      what to do: ${remedyOf(group)}`]),
        ...(groups.length > shownMax
          ? [`    and ${Output.plural(groups.length - shownMax, "further problem")}; --json shows all`]
          : [])
      ]
}
