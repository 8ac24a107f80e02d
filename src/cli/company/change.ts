/** `tributary company list`, `pause`, `resume` and `rotate-token`. */
import * as Effect from "effect/Effect"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { transaction } from "../../postgres/Transaction.ts"
import { reseal } from "../../subscriptions/SigningSecrets.ts"
import { switchFlag, warehouseCommand } from "../Command.ts"
import * as Output from "../Output.ts"
import {
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

export const listCommand = warehouseCommand({
  name: "list",
  description: "Show the companies of the configuration file and of the warehouse; never a token",
  examples: { "tributary company list --json": "For programs" },
  flags: {},
  run: ({ companies, unusable }) =>
    Effect.gen(function* () {
      const stored = new Map((yield* CompanyStore.read).map((row) => [row.company, row]))
      const numbers = yield* TaskQueue.companyIds
      const numberOf = (name: string) => numbers.get(name) ?? null
      return {
        companies: [
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
      }
    }),
  lines: ({ companies }) =>
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
})

export const pauseCommand = warehouseCommand({
  name: "pause",
  description: "Stop all work of a company but the storing of its deliveries",
  examples: { "tributary company pause north": "Until it is resumed" },
  flags: { name: nameArgument },
  run: (settings, { name }) =>
    Effect.gen(function* () {
      yield* requireRow(settings, name)
      return { company: name, changed: yield* CompanyStore.pause(name, yield* operator) }
    }),
  lines: ({ company, changed }) => [
    changed
      ? `Paused company ${company}: within seconds, processes only store its deliveries; to resume it: tributary company resume ${company}`
      : `Company ${company} was paused before`
  ]
})

export const resumeCommand = warehouseCommand({
  name: "resume",
  description: "Continue the work of a paused company",
  examples: { "tributary company resume north": "Its events and schedules continue" },
  flags: { name: nameArgument },
  run: (settings, { name }) =>
    Effect.gen(function* () {
      yield* requireRow(settings, name)
      return { company: name, changed: yield* CompanyStore.resume(name) }
    }),
  lines: ({ company, changed }) => [changed ? `Resumed company ${company}` : `Company ${company} was not paused`]
})

export const rotateCommand = warehouseCommand({
  name: "rotate-token",
  description: "Replace the token of a company, after the source has accepted the new one",
  examples: { "tributary company rotate-token north --token-env NORTH_TOKEN": "The token of a variable" },
  flags: {
    name: nameArgument,
    ...tokenFlags,
    newKey: switchFlag("new-key", "TRIBUTARY_COMPANIES_KEY was replaced, and opens no stored token")
  },
  run: (settings, flags) =>
    Effect.gen(function* () {
      const { name } = flags
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
    }),
  lines: ({ company, companyId, hadToken }) => [
    `Replaced the token of company ${company}, number ${companyId}; running processes use it within seconds`,
    `  revoke the earlier token once no run uses it; then: tributary webhooks ensure --company ${company}`,
    ...(hadToken
      ? []
      : ["  its earlier token could not be opened: deliveries are refused until webhooks ensure has run"])
  ]
})
