/** The text of alert messages: for people, and as JSON for programs. */
import { kindTraits, type KindTraits } from "../status/ProblemKinds.ts"
import type { AlertMessage } from "./MessageStore.ts"

/** Messages that a text has in full. The others are counted. */
const shownMax = 20

const testTraits = { title: "Test", consequence: "none, this is a test" } as const

const traitsOf = (kind: AlertMessage["kind"]): Pick<KindTraits, "title" | "consequence"> =>
  kind === "test" ? testTraits : kindTraits[kind]

const at = (time: Date): string => `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`

const state = ({ event, severity }: AlertMessage): string =>
  event === "end" ? "ENDED" : event === "worse" ? `WORSE, ${severity.toUpperCase()}` : severity.toUpperCase()

const place = ({ company, subject }: Pick<AlertMessage, "company" | "subject">): string =>
  [company === "" ? "all companies" : company, ...(subject === "" ? [] : [subject])].join(", ")

/** One line. */
export const subjectLine = (message: AlertMessage): string =>
  `[${state(message)}] ${traitsOf(message.kind).title}: ${place(message)}`

const lines = (message: AlertMessage): ReadonlyArray<string> => [
  subjectLine(message),
  `What: ${message.what}.`,
  ...(message.event === "end"
    ? [`From ${at(message.since)} to ${at(message.at)}. Nothing to do.`]
    : [
        `Since: ${at(message.since)}.`,
        `Consequence: ${traitsOf(message.kind).consequence}.`,
        `What to do: ${message.remedy}`
      ])
]

/** The subject of messages that are sent together. */
export const subjectOf = (messages: ReadonlyArray<AlertMessage>): string => {
  const [first] = messages
  if (first !== undefined && messages.length === 1) return subjectLine(first)
  const counts = (["start", "worse", "end"] as const).map(
    (event) => [messages.filter((one) => one.event === event).length, event] as const
  )
  const words = { start: "started", worse: "worse", end: "ended" }
  return `${messages.length} alerts: ${counts
    .filter(([count]) => count > 0)
    .map(([count, event]) => `${count} ${words[event]}`)
    .join(", ")}`
}

/** The text of messages that are sent together. */
export const textOf = (messages: ReadonlyArray<AlertMessage>): string => {
  const further = messages.length - shownMax
  return [
    ...(messages.length > 1 ? [subjectOf(messages)] : []),
    ...messages.slice(0, shownMax).map((message) => lines(message).join("\n")),
    ...(further > 0 ? [`and ${further} more: tributary alerts history`] : [])
  ].join("\n\n")
}

const orNull = (text: string): string | null => (text === "" ? null : text)

/** The members of a message for programs. `company` is null for a condition of the whole warehouse. */
export const jsonOf = (message: AlertMessage) => {
  const { id, event, kind, company, subject, severity, since, at: time, what, remedy } = message
  const { title, consequence } = traitsOf(kind)
  return {
    id: String(id),
    event,
    severity,
    kind,
    title,
    company: orNull(company),
    subject: orNull(subject),
    since: since.toISOString(),
    at: time.toISOString(),
    what,
    consequence,
    remedy
  }
}
