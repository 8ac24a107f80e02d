/** The page of the kinds of problems, printed from their data. */
import { Duration } from "effect"
import { kinds, kindTraits } from "../../src/status/ProblemKinds.ts"

const startOf = (time: Duration.Duration | null): string =>
  time === null ? "no alert" : Duration.isZero(time) ? "at once" : `after ${Duration.toMinutes(time)} min`

const severityOf = (criticalFrom: number): string =>
  criticalFrom === 0 ? "critical" : `critical from level ${criticalFrom} on`

export const problemsPage = (): string =>
  `# Problems

Every problem that a person may have to resolve is a row of \`tributary.problems\`. The overview, the menu, \`tributary status\`, \`tributary doctor\`, alerts, the metric \`tributary_problems\` and the assistants' tool \`problems\` show these rows and no others.

\`\`\`sql
select kind, company, subject, severity, since, what, remedy, command from tributary.problems where not is_consequence;
\`\`\`

On Postgres with just-in-time compilation (\`jit\`, on by default up to 18), run \`set jit = off\` before: compiling the view takes longer than reading it.

A row has the size of the problem, and a level, which rises with it by classes: an alert is sent again when it rises. A consequence ends with another problem: a resource that fails because its token is refused, for example. An alert about it does not start. \`alerts.start_after\` changes the time before an alert.

| kind | what it is | consequence | severity | alert |
| --- | --- | --- | --- | --- |
${kinds
  .map((kind) => {
    const { title, consequence, criticalFrom, startAfter } = kindTraits[kind]
    return `| \`${kind}\` | ${title} | ${consequence} | ${severityOf(criticalFrom)} | ${startOf(startAfter)} |`
  })
  .join("\n")}

Every resource, with or without a problem, is a row of \`tributary.resource_states\`.
`
