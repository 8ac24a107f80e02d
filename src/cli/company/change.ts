/** `tributary company list`, `pause`, `resume` and `rotate-token`. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { transaction } from "../../postgres/Transaction.ts"
import { reseal } from "../../subscriptions/SigningSecrets.ts"
import { onWarehouse, switchFlag, withExamples } from "../Command.ts"
import * as Output from "../Output.ts"
import {
  commonFlags,
  companyOf,
  identify,
  nameArgument,
  operator,
  readRows,
  readToken,
  refuse,
  requireKey,
  requireRow,
  tokenFlags
} from "./Editing.ts"

export const listCommand = Command.make(
  "list",
  commonFlags,
  Effect.fn(function* (flags) {
    const companies = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* ({ companies, unusable }) {
        const stored = new Map((yield* CompanyStore.read).map((row) => [row.company, row]))
        const numbers = yield* TaskQueue.companyIds
        const numberOf = (name: string) => numbers.get(name) ?? null
        return [
          ...companies.map(({ name, installation, url, companyId, resources, paused }) => ({
            company: name,
            installation: installation.name,
            number: numberOf(name),
            origin: stored.has(name) ? "warehouse" : "file",
            url,
            companyId,
            resources,
            paused,
            problem: null
          })),
          ...unusable.map(({ name, problem, paused }) => ({
            company: name,
            installation: stored.get(name)?.installation ?? null,
            number: numberOf(name),
            origin: "warehouse",
            url: stored.get(name)?.url ?? null,
            companyId: stored.get(name)?.companyId ?? null,
            resources: stored.get(name)?.resources ?? null,
            paused,
            problem
          }))
        ]
      })
    )
    yield* Output.printResult(flags.json, { companies }, () =>
      companies.length === 0
        ? ["no company is configured; add one: tributary company add NAME"]
        : [
            Output.table(
              ["company", "number", "installation", "from", "state", "resources", "address"],
              companies.map(({ company, installation, number, origin, paused, problem, resources, url }) => [
                company,
                number === null ? "" : String(number),
                installation ?? "",
                origin,
                problem !== null
                  ? "unusable"
                  : paused === null
                    ? "active"
                    : `paused ${paused.at.toISOString()} by ${paused.by}`,
                resources === null ? "all" : Output.count(resources.length),
                url ?? ""
              ]),
              ["left", "right", "left", "left", "left", "right", "left"]
            ),
            ...companies.flatMap(({ problem }) => (problem === null ? [] : [`  ${problem}`]))
          ]
    )
  })
).pipe(
  Command.withDescription("Show the companies of the configuration file and of the warehouse; never a token"),
  withExamples({ "tributary company list --json": "For programs" })
)

export const pauseCommand = Command.make(
  "pause",
  { name: nameArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const paused = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        yield* requireRow(settings, name)
        return yield* CompanyStore.pause(name, yield* operator)
      })
    )
    yield* Output.printResult(flags.json, { company: name, changed: paused }, () => [
      paused
        ? `Paused company ${name}: within seconds, processes only store its deliveries; to resume it: tributary company resume ${name}`
        : `Company ${name} was paused before`
    ])
  })
).pipe(
  Command.withDescription("Stop all work of a company but the storing of its deliveries"),
  withExamples({ "tributary company pause north": "Until it is resumed" })
)

export const resumeCommand = Command.make(
  "resume",
  { name: nameArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const resumed = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        yield* requireRow(settings, name)
        return yield* CompanyStore.resume(name)
      })
    )
    yield* Output.printResult(flags.json, { company: name, changed: resumed }, () => [
      resumed ? `Resumed company ${name}` : `Company ${name} was not paused`
    ])
  })
).pipe(
  Command.withDescription("Continue the work of a paused company"),
  withExamples({ "tributary company resume north": "Its events and schedules continue" })
)

export const rotateCommand = Command.make(
  "rotate-token",
  {
    name: nameArgument,
    ...tokenFlags,
    newKey: switchFlag("new-key", "TRIBUTARY_COMPANIES_KEY was replaced, and opens no stored token"),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    const { name } = flags
    const result = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        const key = yield* requireKey(settings)
        const row = yield* requireRow(settings, name)
        if (!flags.newKey) yield* readRows(key)
        const token = yield* readToken(name, flags)
        const { identity } = yield* identify(settings, yield* companyOf(settings, row, token))
        const earlier = CompanyStore.tokenOf(key, row)
        const secrets = yield* transaction(
          Effect.gen(function* () {
            if (!(yield* CompanyStore.rotateToken(key, row, token))) {
              return yield* refuse(`company ${name} was changed meanwhile; run this again`)
            }
            return earlier === null ? 0 : yield* reseal(name, earlier, token)
          })
        )
        return { company: name, companyId: identity.companyId, secrets, hadToken: earlier !== null }
      })
    )
    yield* Output.printResult(flags.json, result, ({ companyId, hadToken }) => [
      `Replaced the token of company ${name}, number ${companyId}; running processes use it within seconds`,
      `  revoke the earlier token once no run uses it; then: tributary webhooks ensure --company ${name}`,
      ...(hadToken
        ? []
        : ["  its earlier token could not be opened: deliveries are refused until webhooks ensure has run"])
    ])
  })
).pipe(
  Command.withDescription("Replace the token of a company, after the source has accepted the new one"),
  withExamples({ "tributary company rotate-token north --token-env NORTH_TOKEN": "The token of a variable" })
)
