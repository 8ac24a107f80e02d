/** The settings of `tributary init`: areas, freshness, the webhook address and the password of the dashboard. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Prompt from "effect/cli/Prompt"
import { exitCode } from "../Exit.ts"
import { blockedPaths, type Company } from "./Companies.ts"
import { describeProblems, freshnessMinutesDefault, loadDraft, makeDraft } from "./Draft.ts"
import { answerOf, askSecret, failWith, type InitContext } from "./InitContext.ts"

const freshnessMinutesMax = 7 * 24 * 60
const passwordVariableDefault = "TRIBUTARY_DASHBOARD_PASSWORD"
const passwordLengthMin = 8

/** The areas to sync; empty is all. */
export const chooseAreas = (context: InitContext, companies: ReadonlyArray<Company>) => {
  const resources = [...context.catalogue.resources.values()]
  const readable = context.catalogue.areas.filter(({ name }) =>
    companies.some((company) => {
      const blocked = blockedPaths(company)
      return resources.some(({ area, path }) => area === name && !blocked.has(path))
    })
  )
  const prompt = Effect.gen(function* () {
    const isPart = yield* Prompt.Select({
      message: "Which resources?",
      choices: [
        { title: "all that the token may read", value: false },
        { title: "those of some areas", value: true }
      ]
    })
    if (!isPart) return []
    return yield* Prompt.MultiSelect({
      message: "Which areas? (space selects, return continues)",
      choices: readable.map(({ name, covers }) => ({ title: name, value: name, description: covers })),
      min: 1
    })
  })
  const { areas } = context.options
  return answerOf<ReadonlyArray<string>>(context, areas.length > 0 ? areas : null, prompt, [])
}

/** The readable resources with personal data that are left out. */
export const chooseExcluded = (
  context: InitContext,
  companies: ReadonlyArray<Company>,
  areas: ReadonlyArray<string>
) => {
  const blocked = companies.map(blockedPaths)
  const personal = [...context.catalogue.resources.values()]
    .filter((one) => one.personal && (areas.length === 0 || areas.includes(one.area)))
    .map(({ path }) => path)
    .filter((path) => blocked.some((paths) => !paths.has(path)))
  if (personal.length === 0) return Effect.succeed(personal)
  const prompt = Prompt.Confirm({ message: `Leave out personal data (${personal.join(", ")})?`, initial: true })
  const answer = Effect.map(prompt, (isLeftOut) => (isLeftOut ? personal : []))
  return answerOf<ReadonlyArray<string>>(context, context.options.withPersonalData ? [] : null, answer, personal)
}

/** The companies with the readable resources of these areas, without the excluded ones; unchanged without areas. */
export const limitToAreas = Effect.fnUntraced(function* (
  { catalogue }: InitContext,
  companies: ReadonlyArray<Company>,
  areas: ReadonlyArray<string>,
  excluded: ReadonlyArray<string>
) {
  if (areas.length === 0) return companies
  const limited = companies.map((company) => {
    const blocked = blockedPaths(company)
    const resources = [...catalogue.resources.values()]
      .filter(({ area, path }) => areas.includes(area) && !blocked.has(path) && !excluded.includes(path))
      .map(({ path }) => path)
    return { ...company, resources }
  })
  for (const { name, resources } of limited) {
    if (resources.length === 0) {
      const reason = `the token may read nothing of ${areas.join(", ")}`
      const remedy = excluded.length === 0 ? "" : ` but personal data (${excluded.join(", ")}): --with-personal-data`
      return yield* failWith(exitCode.refused, `company ${name}: ${reason}${remedy}`)
    }
  }
  return limited
})

/** The maximum age of a resource. */
export const chooseFreshness = Effect.fnUntraced(function* (context: InitContext) {
  const minutes = yield* answerOf(
    context,
    context.options.freshnessMinutes,
    Prompt.Int({
      message: "Maximum age of a resource, in minutes:",
      default: freshnessMinutesDefault,
      min: 1,
      max: freshnessMinutesMax
    }),
    freshnessMinutesDefault
  )
  return minutes < 1 || minutes > freshnessMinutesMax
    ? yield* failWith(exitCode.usage, `--freshness: expected minutes, from 1 to ${freshnessMinutesMax}`)
    : minutes
})

/** The public address of webhooks; null receives none. */
export const choosePublicUrl = (context: InitContext, companies: ReadonlyArray<Company>) => {
  const prompt = Prompt.String({
    message: "Public https address for webhooks (empty: none)",
    validate: (value) => {
      const publicUrl = value.trim()
      return publicUrl === ""
        ? Effect.succeed("")
        : loadDraft(context, makeDraft(companies, { publicUrl })).pipe(
            Effect.mapError(describeProblems),
            Effect.as(publicUrl)
          )
    }
  })
  const answer = Effect.map(prompt, (text) => (text === "" ? null : text))
  return answerOf<string | null>(context, context.options.publicUrl, answer, null)
}

/** The password of the dashboard and its variable; null without a password. */
export const choosePassword = Effect.fnUntraced(function* (context: InitContext) {
  const { isInteractive, passwordVariable } = context.options
  const name = passwordVariable ?? passwordVariableDefault
  const label = "password of the dashboard"
  const value = context.variable(name)
  if (value !== undefined) return { name, value: Redacted.make(value, { label }) }
  if (passwordVariable !== null) {
    return yield* failWith(exitCode.usage, `--page-password-env: the variable ${name} is not set`)
  }
  if (!isInteractive) return null
  const typed = yield* askSecret("Password for the dashboard (empty: none, for this machine only)", label, (text) =>
    text === "" || text.length >= passwordLengthMin ? null : `at least ${passwordLengthMin} characters, or none at all`
  )
  return Redacted.value(typed) === "" ? null : { name, value: typed }
})
