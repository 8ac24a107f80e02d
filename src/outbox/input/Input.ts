/**
 * The input that `--from` names: a file, the standard input, or a query of the warehouse.
 *
 * Promise: the format is known before the first record is read, or the input is rejected.
 */
import { createReadStream } from "node:fs"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ReadFile from "../../files/ReadFile.ts"
import type { Database } from "../../postgres/Database.ts"
import type { DatabaseError } from "../../postgres/DatabaseError.ts"
import * as Csv from "./Csv.ts"
import type { InputRecord } from "./InputRecord.ts"
import { InputError } from "./InputRecord.ts"
import * as NdJson from "./NdJson.ts"
import * as QueryInput from "./QueryInput.ts"

export type Format = "ndjson" | "csv"

export interface InputOptions {
  /** Null: by the extension of the file; the standard input is NDJSON. */
  readonly format?: Format | null
  /** The separator of cells; null is a comma, or a tab in a `.tsv` file. */
  readonly delimiter?: Csv.Delimiter | null
  /** The standard input, which `-` names. */
  readonly stdin: () => AsyncIterable<Uint8Array>
}

/** Records and the name of their source, for people. Only a query needs the warehouse. */
export type Input =
  | { readonly _tag: "File"; readonly source: string; readonly records: Stream.Stream<InputRecord, InputError> }
  | {
      readonly _tag: "Query"
      readonly source: string
      readonly records: Stream.Stream<InputRecord, InputError | DatabaseError, Database>
    }

const extensions: Readonly<Record<string, readonly [Format, Csv.Delimiter]>> = {
  ndjson: ["ndjson", ","],
  jsonl: ["ndjson", ","],
  csv: ["csv", ","],
  tsv: ["csv", "\t"]
}

const unreadable = (name: string) => (error: unknown) =>
  new InputError({
    message:
      (error as NodeJS.ErrnoException).code === "ENOENT"
        ? `${name} cannot be read: there is no such file`
        : ReadFile.problemOf(name, error).message,
    remedy: "check the path after --from"
  })

/** Opens nothing: the file is opened when its records are read. */
export const openInput = (text: string, options: InputOptions): Effect.Effect<Input, InputError> => {
  if (QueryInput.isQuery(text)) {
    return Effect.succeed({ _tag: "Query", source: text.trim(), records: QueryInput.read(text) })
  }
  const isStdin = text === "-"
  const extension = /\.([^./\\]+)$/.exec(text)?.[1]?.toLowerCase() ?? ""
  const known = isStdin
    ? extensions["ndjson"]
    : Object.hasOwn(extensions, extension)
      ? extensions[extension]
      : undefined
  const format = options.format ?? known?.[0]
  if (format === undefined) {
    return Effect.fail(
      new InputError({
        message: `the format of ${text} is not known`,
        remedy:
          'rename it to .ndjson, .jsonl, .csv or .tsv, set --format ndjson or csv, or give a query: --from "select ..."'
      })
    )
  }
  const source = isStdin ? "standard input" : text
  const records = Stream.suspend(() => {
    const bytes = isStdin ? options.stdin() : createReadStream(text)
    const pieces = format === "ndjson" ? NdJson.read(bytes) : Csv.read(bytes, options.delimiter ?? known?.[1] ?? ",")
    return Stream.fromAsyncIterable(pieces, unreadable(source)).pipe(Stream.flattenIterable)
  })
  return Effect.succeed({ _tag: "File", source, records })
}
