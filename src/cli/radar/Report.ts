/** The report of `tributary radar`, as lines for people. */
import type { CataloguePatch, RadarDifference, RadarReport, RadarSetting } from "../../connector/Radar.ts"
import * as Output from "../Output.ts"

const namesMax = 5
const patchLinesMax = 20

const requestOf = ({ request, requestId }: RadarDifference): string =>
  requestId === null ? request : `${request} [request ${Output.shown(requestId)}]`

/** The differences of one check: the first one in full, and the other subjects by name. */
const differenceLines = (
  { checks }: Pick<RadarReport, "checks">,
  differences: ReadonlyArray<RadarDifference>
): ReadonlyArray<string> => {
  const [first] = differences
  const check = checks.find(({ id }) => id === first?.check)
  if (first === undefined || check === undefined) return []
  const subjects = differences.map(({ subject }) => Output.shown(subject)).filter((subject) => subject !== "")
  const settings = differences.flatMap(({ setting }) => setting ?? [])
  return [
    `DIFFERENT  ${check.id}: ${check.fact} (${check.basis})`,
    `           seen: ${first.subject === "" ? "" : `${Output.shown(first.subject)}: `}${Output.shown(first.seen)}`,
    `           ${requestOf(first)}`,
    ...(subjects.length > 1 ? [`           in ${Output.firstOf(subjects, namesMax)}`] : []),
    ...new Set(settings.map(({ path, value }) => `           setting: ${path}: ${value}`)),
    `           -> ${first.advice}`
  ]
}

/** The settings as a part of `config/tributary.yaml`. */
export const settingsLines = (settings: ReadonlyArray<RadarSetting>): ReadonlyArray<string> =>
  [...Map.groupBy(settings, ({ path }) => path.split(".")[0]!)].map(([section, own]) => {
    const members = own.map(({ path, value }) => `${path.slice(section.length + 1)}: ${value}`)
    return `${section}: { ${members.join(", ")} }`
  })

const patchLine = ({ resource, field, change, from, to, command }: CataloguePatch): string =>
  `${field === null ? resource : `${resource}.${Output.shown(field)}`}: ${change} ${from} -> ${to}${command === null ? "" : `; ${command}`}`

const section = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)]

/** What was not compared: each reason with its checks. After an early end the reason of most is that end. */
const gapLines = ({ coverage, ended }: RadarReport): ReadonlyArray<string> => {
  if (ended !== null) return []
  const reasons = new Map<string, Array<string>>()
  for (const { check, checked, unchecked } of coverage) {
    const mark = checked > 0 ? `${check} (in part)` : check
    for (const reason of unchecked) reasons.set(reason, [...(reasons.get(reason) ?? []), mark])
  }
  return [...reasons].map(([reason, names]) => `${names.join(", ")}: ${reason}`)
}

const accessLines = ({ access }: RadarReport): ReadonlyArray<string> =>
  access.refused.map(({ reason, resources }) => `${reason}: ${resources.join(", ")}`)

export const linesOf = (report: RadarReport, recorded: string | null): ReadonlyArray<string> => {
  const { access, address, companyId, coverage, differences, ended, patch, requests, settings } = report
  const groups = [...Map.groupBy(differences, ({ check }) => check).values()]
  const compared = coverage.filter(({ checked }) => checked > 0).length
  const company = companyId === null ? "" : `, company ${companyId}`
  return [
    `${address}${company}: ${Output.plural(requests, "request")}, ${Output.plural(access.read, "resource")} read, ` +
      `${access.empty.length} of them empty`,
    "",
    ...groups.flatMap((group) => differenceLines(report, group)),
    ...(ended !== null
      ? ["the comparison ended early"]
      : groups.length === 0
        ? ["no difference from the documentation"]
        : []),
    ...section("Not readable with this token (no difference)", accessLines(report)),
    ...section("Not compared", gapLines(report)),
    ...section("Recommended settings for config/tributary.yaml", settingsLines(settings)),
    ...section("Changes of the catalogue", [
      ...patch.slice(0, patchLinesMax).map(patchLine),
      ...(patch.length > patchLinesMax
        ? [`and ${Output.count(patch.length - patchLinesMax)} more; --json has all of them`]
        : [])
    ]),
    "",
    `${compared} of ${coverage.length} facts compared, ${groups.length} different` +
      (recorded === null ? "" : `; the answers are in ${recorded}, without their values`)
  ]
}
