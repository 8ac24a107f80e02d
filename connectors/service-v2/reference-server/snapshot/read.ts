/**
 * The state of a snapshot file; `lines.ts` describes the lines.
 *
 * Promise: a file is read completely or refused with the number of the line that is wrong. A state that was read can be
 * served: every reference leads to an earlier line, every record to a resource of the catalogue.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import { ControlError, reader } from "../control/Input.ts"
import { isObject, parseExactly } from "../json.ts"
import type { WorldState } from "../World.ts"
import { Changes } from "./changes.ts"
import { forms, format, formatVersion, kinds, singleKinds } from "./lines.ts"
import type { Kind } from "./lines.ts"
import { addLine, emptyDraft, finish } from "./draft.ts"
import type { Line } from "./draft.ts"

/** A snapshot that cannot be restored; the message names the line. */
export class SnapshotError extends ControlError {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
  }
}

/** Members whose numbers keep their digits. */
const exactMembers = ["values", "extra", "custom"]

const readers = Object.fromEntries(kinds.map((kind) => [kind, reader(forms[kind] as never, exactMembers)])) as Record<
  Kind,
  (input: unknown) => Line
>

/** A number token that plain JSON would change, as a member or an element; text in strings may match too. */
const unusualNumber = /(?:"\s*:|[,[])\s*(?:-0|-?\d+[.eE]|-?\d{16})/

const parseLine = (text: string): Readonly<Record<string, unknown>> => {
  let parsed: unknown
  try {
    parsed = unusualNumber.test(text) ? parseExactly(text) : JSON.parse(text)
  } catch {
    throw new ControlError("this is not valid JSON")
  }
  if (!isObject(parsed)) throw new ControlError("this is not a JSON object")
  return parsed
}

const readHeader = (text: string) => {
  const header = parseLine(text)
  if (header["format"] !== format) throw new ControlError(`this is no snapshot: "format" must be "${format}"`)
  if (header["version"] === formatVersion) return
  throw new ControlError(
    `the version is ${JSON.stringify(header["version"])} and this server reads version ${formatVersion}`
  )
}

function* linesOf(text: string): Generator<string> {
  let start = 0
  while (start < text.length) {
    const end = text.indexOf("\n", start)
    yield text.slice(start, end < 0 ? text.length : end)
    start = end < 0 ? text.length : end + 1
  }
}

const kindOf = (line: Readonly<Record<string, unknown>>, before: Kind | null): Kind => {
  const kind = kinds.find((one) => one === line["kind"])
  if (kind === undefined) throw new ControlError(`"kind" must be one of ${kinds.join(", ")}`)
  if (before !== null && kinds.indexOf(kind) < kinds.indexOf(before)) {
    throw new ControlError(`a line of kind ${kind} stands before those of kind ${before}`)
  }
  if (kind === before && singleKinds.has(kind)) throw new ControlError(`there is a second line of kind ${kind}`)
  const missing = kinds.find(
    (one) =>
      singleKinds.has(one) &&
      kinds.indexOf(one) < kinds.indexOf(kind) &&
      kinds.indexOf(one) > (before === null ? -1 : kinds.indexOf(before))
  )
  if (missing !== undefined) throw new ControlError(`the line of kind ${missing} is missing before this one`)
  return kind
}

/** Reads the text of a snapshot file; throws {@link SnapshotError}. */
export const readSnapshot = (catalogue: Catalogue, text: string): WorldState => {
  const draft = emptyDraft()
  const changes = new Changes(catalogue, draft)
  let line = 0
  let kind: Kind | null = null
  try {
    for (const one of linesOf(text)) {
      line++
      if (line === 1) {
        readHeader(one)
        continue
      }
      if (kind === "end") throw new ControlError("there is a line after the last one")
      const parsed = parseLine(one)
      kind = kindOf(parsed, kind)
      const read = readers[kind](parsed)
      if (read.kind === "change") changes.add(read)
      else addLine(catalogue, draft, read, line - 2)
    }
    if (line === 0) throw new ControlError("the snapshot is empty")
    if (kind !== "end") throw new ControlError("the snapshot was cut here: the line of kind end is missing")
    const { history, seq } = changes
    return finish(draft, { history, seq, tables: changes.tables() })
  } catch (error) {
    throw error instanceof ControlError ? new SnapshotError(line, error.message) : error
  }
}
