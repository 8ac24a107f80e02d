/** The command `processes`: the live processes of `serve`, and the companies that each owns. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import { chooseCompanies, namesOf } from "../configuration/Configuration.ts"
import * as Processes from "../status/Processes.ts"
import { company, config, json, onWarehouse, withExamples } from "./Command.ts"
import * as Output from "./Output.ts"

/** A line of the table shows so many names; `--json` has all. */
const namesMax = 8

const lines = ({ processes, withoutOwner }: Processes.ProcessesStatus): ReadonlyArray<string> => {
  if (processes.length === 0) return ["no process of serve is alive; start one: tributary serve"]
  const rows = processes.map(({ processId, host, pid, ageMs, silentMs, companies }) => [
    processId,
    host === null ? "" : `${host}, pid ${pid}`,
    `${Output.elapsed(ageMs)} ago`,
    `${Output.elapsed(silentMs)} ago`,
    Output.count(companies.length),
    Output.firstOf(
      companies.map((owned) => owned.company),
      namesMax
    )
  ])
  const head = ["process", "runs on", "started", "heartbeat", "companies", ""]
  return [
    Output.table(head, rows, ["left", "left", "left", "left", "right", "left"]),
    ...(withoutOwner.length === 0
      ? []
      : [
          `no live process owns ${Output.firstOf(withoutOwner, namesMax)}: a killed process is replaced within 10 s, ` +
            "and a new one owns companies a few seconds after its start"
        ])
  ]
}

export const command = Command.make(
  "processes",
  { company, config, json },
  Effect.fn(function* (flags) {
    const status = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        yield* chooseCompanies(settings, flags.company)
        const names = namesOf(settings).filter((name) => flags.company.length === 0 || flags.company.includes(name))
        return yield* Processes.read(names)
      })
    )
    yield* Output.printResult(flags.json, status, () => lines(status))
  })
).pipe(
  withExamples({
    "tributary processes": "Which process owns which companies",
    "tributary processes --company main --json": "The owner of one company, for programs"
  })
)
