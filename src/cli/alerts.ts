/** The command `alerts`: conditions, silences and messages of alerts, and a test of the routes. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as ConditionStore from "../alerts/ConditionStore.ts"
import { alertKinds, severityOf } from "../status/ProblemKinds.ts"
import * as MessageStore from "../alerts/MessageStore.ts"
import { isSilenced } from "../alerts/Transitions.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { interval } from "../configuration/ScheduleSettings.ts"
import { between } from "../configuration/SettingValues.ts"
import { config, configuration, json, onWarehouse, switchFlag, textFlag, withExamples } from "./Command.ts"
import { operator } from "./company/Editing.ts"
import { endWith, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { startOf, timeFlag } from "./TimeRange.ts"

const { shown } = Output

const minuteOf = (time: Date): string => time.toISOString().slice(0, 16).replace("T", " ")

const noRoute = "no route is configured, so that no message is sent; see alerts.routes in config/tributary.example.yaml"

const silenceText = ({ id, kind, company, subject, until, reason, by }: ConditionStore.StoredSilence): string =>
  `silence ${id}: ${shown(kind ?? "every kind")} of ${shown(company ?? "every company")}` +
  `${subject === null ? "" : `, ${shown(subject)}`} until ${minuteOf(until)} UTC, by ${shown(by)}` +
  (reason === null ? "" : ` (${shown(reason)})`)

const routesOf = ({ alerts }: Pick<Configuration, "alerts">) =>
  alerts.routes.map(({ name, receiver }) => ({ name, type: receiver.type }))

/** The conditions, and whether a `serve` evaluates them. */
export const readList = Effect.fnUntraced(function* (settings: Pick<Configuration, "alerts">) {
  const silences = yield* ConditionStore.readSilences
  const conditions = (yield* ConditionStore.readConditions).map(({ announced, ...condition }) => ({
    ...condition,
    severity: severityOf(condition.kind, condition.level),
    isSilenced: isSilenced(silences, condition),
    routes: Object.keys(announced)
  }))
  const { evaluatedAt, ageMs } = yield* ConditionStore.readEvaluated
  const isEvaluated = ageMs !== null && ageMs <= ConditionStore.breakMs
  return { evaluatedAt, isEvaluated, conditions, silences, routes: routesOf(settings) }
})
type Listed = Effect.Success<ReturnType<typeof readList>>

const stateOf = ({ startedAt, absentAt, isSilenced: silenced }: Listed["conditions"][number]): string =>
  [startedAt === null ? "observed" : absentAt === null ? "started" : "ending", ...(silenced ? ["silenced"] : [])].join(
    ", "
  )

/** A serve that ended leaves the conditions of its last evaluation. */
const notEvaluated = (evaluatedAt: Date | null): string =>
  `not evaluated: ${evaluatedAt === null ? "no serve has evaluated the conditions yet" : `the last evaluation was at ${minuteOf(evaluatedAt)} UTC, and no serve evaluates now`}; ` +
  "start tributary serve, or see tributary status"

export const listLines = ({
  evaluatedAt,
  isEvaluated,
  conditions,
  silences,
  routes
}: Listed): ReadonlyArray<string> => [
  ...(routes.length === 0 ? [noRoute] : []),
  ...(isEvaluated ? [] : [notEvaluated(evaluatedAt)]),
  ...(conditions.length === 0
    ? isEvaluated
      ? ["no condition holds"]
      : []
    : [
        Output.table(
          ["severity", "kind", "company", "subject", "since (UTC)", "state", "sent to"],
          conditions.map((one) => [
            one.severity,
            one.kind,
            one.company === "" ? "all" : one.company,
            one.subject,
            minuteOf(one.since),
            stateOf(one),
            one.routes.join(", ")
          ])
        ),
        "",
        ...conditions.flatMap(({ what, remedy }) => [`  ${shown(what)}`, `    what to do: ${shown(remedy)}`])
      ]),
  ...silences.map(silenceText)
]

const list = Command.make(
  "list",
  { config, json },
  Effect.fn(function* (flags) {
    yield* Output.printResult(flags.json, yield* onWarehouse(flags, readList), listLines)
  })
).pipe(
  Command.withDescription("Show the conditions that hold, and the silences"),
  withExamples({ "tributary alerts list": "What holds now, with the remedies" })
)

const silence = Command.make(
  "silence",
  {
    kind: Flag.Literals("kind", alertKinds).pipe(Flag.withDescription("Only this kind"), Flag.optional),
    company: textFlag("company", "NAME", "Only this company"),
    subject: textFlag("subject", "NAME", "Only this resource or endpoint"),
    for: Flag.String("for").pipe(
      Flag.withDescription("The length of the silence: 90s, 10m, 2h or 1d"),
      Flag.withMetavar("DURATION"),
      Flag.withSchema(interval),
      Flag.optional
    ),
    until: timeFlag("until", "The end of the silence: a day, or RFC 3339 in UTC"),
    reason: textFlag("reason", "TEXT", "A note that list shows"),
    config,
    json
  },
  Effect.fn(function* (flags) {
    if (Option.isSome(flags.for) === Option.isSome(flags.until)) {
      return yield* usageError("set either --for or --until")
    }
    const by = yield* operator
    const stored = yield* onWarehouse(flags, () =>
      ConditionStore.addSilence({
        kind: Option.getOrNull(flags.kind),
        company: Option.getOrNull(flags.company),
        subject: Option.getOrNull(flags.subject),
        until: Option.getOrNull(Option.map(flags.until, startOf)),
        seconds: Option.getOrNull(Option.map(flags.for, Duration.toSeconds)),
        reason: Option.getOrNull(flags.reason),
        by
      })
    )
    yield* Output.printResult(flags.json, { silence: stored }, () => [
      silenceText(stored),
      `to end it earlier: tributary alerts unsilence ${stored.id}`
    ])
  })
).pipe(
  Command.withDescription("Send nothing about some conditions for a time; one that still holds at the end starts then"),
  withExamples({
    "tributary alerts silence --kind late --company north --for 2h": "During a maintenance of the service",
    'tributary alerts silence --until 2030-01-01 --reason "migration" --json': "Everything, until a day"
  })
)

const unsilence = Command.make(
  "unsilence",
  {
    silence: Argument.String("silence").pipe(
      Argument.withDescription("Number of the silence"),
      Argument.withSchema(
        Schema.String.check(Schema.isPattern(/^\d{1,18}$/u, { message: "Expected the number of a silence" }))
      ),
      Argument.optional
    ),
    all: switchFlag("all", "Every silence"),
    config,
    json
  },
  Effect.fn(function* (flags) {
    if (Option.isSome(flags.silence) === flags.all) {
      return yield* usageError("name the number of a silence, or --all; tributary alerts list shows them")
    }
    const ended = yield* onWarehouse(flags, () =>
      ConditionStore.endSilences(Option.getOrNull(Option.map(flags.silence, BigInt)))
    )
    yield* Output.printResult(flags.json, { ended }, () =>
      ended.length === 0 ? ["there is no such silence"] : ended.map((one) => `ended ${silenceText(one)}`)
    )
    yield* endWith(ended.length === 0 && !flags.all ? exitCode.usage : exitCode.ok)
  })
).pipe(
  Command.withDescription("End a silence; conditions that hold start within a minute"),
  withExamples({
    "tributary alerts unsilence 3": "One silence",
    "tributary alerts unsilence --all --json": "Every silence"
  })
)

const testMessage = (route: string, nowMs: number): MessageStore.AlertMessage => ({
  id: 0n,
  event: "start",
  kind: "test",
  company: "",
  subject: "",
  severity: "warning",
  since: new Date(nowMs),
  at: new Date(nowMs),
  what: `this message tests the route ${route}`,
  remedy: "nothing; tributary alerts list shows what holds"
})

const test = Command.make(
  "test",
  {
    route: Argument.String("route").pipe(
      Argument.withDescription("Name of the route (default: every route)"),
      Argument.optional
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { alerts, proxies } = yield* configuration(flags.config)
    const name = Option.getOrNull(flags.route)
    const routes = alerts.routes.filter((route) => name === null || route.name === name)
    if (routes.length === 0) {
      const configured = alerts.routes.map((route) => route.name).join(", ")
      const message =
        name === null || configured === "" ? noRoute : `there is no route ${name}; configured: ${configured}`
      return yield* usageError(message)
    }
    const [Formats, Transport] = yield* Effect.promise(() =>
      Promise.all([import("../alerts/Formats.ts"), import("../delivery/Transport.ts")])
    )
    const results = yield* Effect.scoped(
      Effect.flatMap(Transport.make(proxies, Transport.limitsOfRoutes), (transport) =>
        Effect.forEach(
          routes,
          (route) =>
            Clock.currentTimeMillis.pipe(
              Effect.flatMap((nowMs) => Formats.send(route, transport, [testMessage(route.name, nowMs)])),
              Effect.map(({ error }) => ({ route: route.name, isAccepted: error === null, error }))
            ),
          { concurrency: "unbounded" }
        )
      )
    )
    yield* Output.printResult(flags.json, { routes: results }, () =>
      results.map(({ route, error }) => `${route}: ${error ?? "accepted"}`)
    )
    yield* endWith(results.every(({ isAccepted }) => isAccepted) ? exitCode.ok : exitCode.fault)
  })
).pipe(
  Command.withDescription("Send a test message to the receivers of the routes; exit code 5: not accepted"),
  withExamples({
    "tributary alerts test": "Every route",
    "tributary alerts test team --json": "One route"
  })
)

const historyLines = (messages: ReadonlyArray<MessageStore.HistoryMessage>): ReadonlyArray<string> =>
  messages.length === 0
    ? ["no message was written yet"]
    : [
        Output.table(
          ["id", "at (UTC)", "event", "severity", "kind", "company", "subject", "route", "state", "failures", "error"],
          messages.map((one) => [
            String(one.id),
            minuteOf(one.at),
            one.event,
            one.severity,
            one.kind,
            one.company === "" ? "all" : one.company,
            one.subject,
            one.route,
            one.state,
            String(one.attempts ?? 0),
            one.error ?? ""
          ]),
          ["right", "left", "left", "left", "left", "left", "left", "left", "left", "right"]
        )
      ]

const history = Command.make(
  "history",
  {
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("Most messages to show (default: 50)"),
      Flag.withMetavar("N"),
      Flag.withSchema(between(1, 10_000)),
      Flag.withDefault(50)
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const messages = yield* onWarehouse(flags, () => MessageStore.readHistory(flags.limit))
    yield* Output.printResult(flags.json, { messages }, () => historyLines(messages))
  })
).pipe(
  Command.withDescription("Show the messages, newest first: sent, waiting, and dead letters"),
  withExamples({
    "tributary alerts history": "The last 50 messages",
    "tributary alerts history --limit 500 --json": "More of them, for programs"
  })
)

export const command = Command.make("alerts").pipe(Command.withSubcommands([list, silence, unsilence, test, history]))
