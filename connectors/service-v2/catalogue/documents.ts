/**
 * The statements of the API's documents, and the decisions where they leave a point open.
 *
 * Promise: all 832 facts, in the order of the documents. A fact is implemented and named by a wire test, or refused with
 * a reason. Read from `documents.json` when they are first needed.
 */
import { readFileSync } from "node:fs"

/** One statement of the documents. */
export interface Fact {
  /** `CODE-08`: its section and its number there. */
  readonly id: string
  readonly text: string
  /** The document and the section that state it. */
  readonly source: string
  /** The reason why no answer of the server can show it; null for an implemented fact. */
  readonly refused: string | null
}

/** What the server does where the documents say nothing, or contradict themselves. */
export interface Decision {
  /** `A-05`: its topic and its number there. */
  readonly id: string
  readonly point: string
  readonly decision: string
}

export interface Documents {
  /** Titles of the sections of facts, by the letters of their ids. */
  readonly sections: Readonly<Record<string, string>>
  /** Titles of the topics of decisions, by the letters of their ids. */
  readonly topics: Readonly<Record<string, string>>
  readonly facts: ReadonlyArray<Fact>
  readonly decisions: ReadonlyArray<Decision>
}

let read: Documents | null = null

export const documents = (): Documents =>
  (read ??= JSON.parse(readFileSync(new URL("documents.json", import.meta.url), "utf8")) as Documents)

/** The letters of an id: `CODE` of `CODE-08`. */
export const familyOf = (id: string): string => id.slice(0, id.lastIndexOf("-"))
