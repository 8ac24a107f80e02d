/**
 * The identity of a checkpoint: its table with the history, its source, and the settings that shape a
 * record.
 *
 * Promise: a cursor is used only for the table that it filled, from the source that gave it, under the settings that
 * shaped the rows. Anything else makes the next run read every record, or stops the run before it writes. The comparison
 * is part of acquiring the resource (ResourceLock.ts), so that no lane can leave it out.
 */
import { createHash } from "node:crypto"
import * as Data from "effect/Data"
import type { Field, FieldType } from "../catalogue/Field.ts"
import { describeFilters, isCancellable, type Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import { SourceChanged, SourceError, type SourceReason } from "../connector/SourceError.ts"

/** The identity of a program that acquires a resource. */
export interface Identity {
  /** Base address of the source; null where the connector has none. */
  readonly address: string | null
  /** Generation of the catalogue. */
  readonly generation: number
  /** The settings that shape a record, as pairs of a name and a value. */
  readonly shape: string
}

/** A program with a newer catalogue has written the rows: this one would lose the values of fields that it lacks. */
export class NewerCatalogue extends Data.TaggedError("NewerCatalogue")<{
  readonly resource: string
  readonly own: number
  readonly met: number
}> {
  override get message(): string {
    return (
      `${this.resource}: its rows were written under catalogue generation ${this.met}, ` +
      `and this program knows generation ${this.own}; nothing was written`
    )
  }
}

const typeText = (type: FieldType): string =>
  type._tag === "decimal"
    ? `decimal ${type.kind} ${type.scale}`
    : type._tag === "string"
      ? `string ${type.maxLength ?? "any"}`
      : type._tag === "list"
        ? `list of ${type.of.map(fieldText).join(", ")}`
        : type._tag

const fieldText = ({ name, type }: Field): string => `${name} ${typeText(type)}`

/**
 * The fields that the catalogue states, as a short hash. Inferred fields are no part of it: their values move to the new
 * column in the transaction that makes it, and a program that does not know the column cannot write (TableChanged).
 */
export const fieldsHash = ({ fields }: Resource): string =>
  createHash("sha256")
    .update(
      fields
        .filter(({ inferred }) => inferred === null)
        .map(fieldText)
        .sort()
        .join("\n")
    )
    .digest("hex")
    .slice(0, 16)

/** Generation of a catalogue that states none. */
export const generationDefault = 1

export const identityOf = (
  resource: Resource,
  { catalogue, source }: Pick<ConnectorShape, "catalogue" | "source">
): Identity => {
  const generation = catalogue.generation ?? generationDefault
  const pairs: Readonly<Record<string, string>> = {
    catalogue: String(generation),
    fields: fieldsHash(resource),
    modifiedsince: String(resource.modifiedSince),
    cancel: String(isCancellable(resource)),
    ignore_fields: resource.ignoredFields.length === 0 ? "none" : [...resource.ignoredFields].sort().join(","),
    ...(resource.since === null ? {} : { since: resource.since.slice(0, 10) }),
    ...(resource.where.length === 0 ? {} : { where: describeFilters(resource.where) }),
    ...(resource.protection === null ? {} : { privacy: resource.protection.statement }),
    ...source?.settings
  }
  return {
    address: source?.address ?? null,
    generation,
    shape: Object.entries(pairs)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join(" ")
  }
}

const pairsOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split(" ").map((pair) => {
      const at = pair.indexOf("=")
      return [pair.slice(0, at), decodeURIComponent(pair.slice(at + 1))] as const
    })
  )

/** The catalogue generation of a stored shape. */
export const generationOf = (shape: string | null): number =>
  shape === null ? 0 : Number(pairsOf(shape).get("catalogue") ?? 0)

const namesOfPairs: Readonly<Record<string, string>> = {
  catalogue: "the catalogue generation",
  fields: "the catalogue's fields",
  modifiedsince: "whether the list offers modifiedsince",
  cancel: "whether cancelled records are read",
  privacy: "the privacy rules",
  since: "the day since which records are read",
  where: "the filters of the records"
}

/** What a shape without the pair means. */
const absent = (name: string): string => (["privacy", "since", "where"].includes(name) ? "none" : "unknown")

/** The differences of two shapes, for people; null when nothing does. */
export const shapeDifference = (stored: string, own: string): string | null => {
  if (stored === own) return null
  const [before, now] = [pairsOf(stored), pairsOf(own)]
  const changed = [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name))
  if (changed.length === 0) return null
  return changed
    .map((name) =>
      name === "fields"
        ? `${namesOfPairs["fields"]} changed`
        : `${namesOfPairs[name] ?? name} changed from ${before.get(name) ?? absent(name)} to ${now.get(name) ?? absent(name)}`
    )
    .join(", ")
}

/**
 * The identity of a table and its history as SQL: `table` and `history` are parameters with their quoted names. Oids show
 * a dataset that was restored or copied, and a table that was created anew; files show one that was truncated.
 */
export const tableIdentitySql = (table: string, history: string): string =>
  `tributary.table_identity(to_regclass(${table}), to_regclass(${history}))`

/** Whether the table or its history has no primary key, so that a landing could double rows. */
export const lacksKey = (identity: string): boolean => pairsOf(identity).has("keys")

/** What differs between two identities of a table. */
export interface TableDifference {
  /** For people. */
  readonly text: string
  /**
   * Whether rows or versions may be lost. Another control plane is a loss too: rows that a person deleted and inserted
   * leave the files of the tables, and the triggers note a deletion in the control plane.
   */
  readonly isLoss: boolean
  /** Whether the control plane is still the one that the rows were landed with. */
  readonly isSameControl: boolean
}

/** The difference of two identities of a table and its history; null when nothing does. */
export const tableDifference = (
  table: string,
  history: string,
  stored: string,
  current: string
): TableDifference | null => {
  if (stored === current) return null
  const [before, now] = [pairsOf(stored), pairsOf(current)]
  const differs = (name: string) => before.get(name) !== now.get(name)
  const replaced = (name: string) =>
    `${name} is another table than the one that was filled (it was dropped or restored, or the dataset was renamed)`
  const rewritten = (name: string) => `${name} was truncated or rewritten (truncate, vacuum full, cluster)`
  const isOtherControl = differs("database") || differs("checkpoints") || differs("control")
  const texts = [
    differs("database") || differs("checkpoints") ? "the warehouse was restored or copied" : null,
    differs("table") ? replaced(table) : differs("file") ? rewritten(table) : null,
    differs("history") ? replaced(history) : differs("historyfile") ? rewritten(history) : null,
    differs("control") ? rewritten("tributary.checkpoints") : null
  ]
  return {
    text: texts.find((text) => text !== null) ?? before.get("altered") ?? `${table} was altered`,
    isLoss: isOtherControl || ["table", "file", "history", "historyfile"].some(differs),
    isSameControl: !isOtherControl
  }
}

/** An error about the identity of a company. */
export const sourceErrorOf = (reason: SourceReason): SourceError =>
  new SourceError({ reason, request: { method: "GET", path: "/me", requestId: null, attempts: 0 } })

/** The error for a source that differs from the source of the rows. */
export const sourceChanged = (detail: string, remedy?: string): SourceError =>
  sourceErrorOf(new SourceChanged(remedy === undefined ? { detail } : { detail, remedy }))

export const otherAddress = (companyId: bigint, stored: string, own: string): SourceError =>
  sourceChanged(`the rows of company ${companyId} come from ${stored}, and ${own} is configured`)
