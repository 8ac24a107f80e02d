/** A comparison of every row of every view with {@link figures} in both directions. */
import * as Effect from "effect/Effect"
import { asOfModelsDataset, type Model } from "../../../src/warehouse/Model.ts"
import { type Books, figures, plain, type Row } from "./figures.ts"
import { sql } from "../../support/postgres.ts"

/** A value of a view in the form of the figures. */
const canonical = (type: string, value: string | null): string | null => (type === "numeric" ? plain(value) : value)

const shownAs = (name: string, type: string): string => {
  const column = `"${name}"`
  if (type !== "timestamp with time zone") return `${column}::text as ${column}`
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as ${column}`
}

const isAsOf = (dataset: string): boolean => dataset === asOfModelsDataset

/** The rows of a view for one company, with this setting of tributary.as_of. */
const rowsOf = Effect.fnUntraced(function* (dataset: string, model: Model, company: number, setting: string) {
  const columns = model.columns.map(({ name, type }) => shownAs(name, type)).join(", ")
  const rows = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select set_config('tributary.as_of', ${model.hasDay || isAsOf(dataset) ? setting : ""}, true)`
      return yield* sql.unsafe<Row>(`select ${columns} from "${dataset}"."${model.name}" where company_id = $1`, [
        company
      ])
    })
  )
  return rows.map((row) =>
    Object.fromEntries(
      model.columns
        .filter(({ name }) => name !== "company_id")
        .map(({ name, type }) => [name, canonical(type, row[name]!)])
    )
  )
})

const sorted = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)))).sort()

export interface Checked {
  /** The number of rows of each view, over all companies. */
  readonly rows: Readonly<Record<string, number>>
  /** Rows that exist on one side only, with the view and the side. */
  readonly wrong: ReadonlyArray<string>
}

/**
 * Compares all views with the books of all companies. The setting may be a moment or a position of the day. A view without
 * a day is compared on the present one, except as of a moment.
 */
export const check = Effect.fnUntraced(function* (
  models: ReadonlyArray<Model>,
  dataset: string,
  companies: ReadonlyArray<Books>,
  asOf: string,
  setting = asOf
) {
  const wrong: Array<string> = []
  const rows: Record<string, number> = {}
  const [{ today } = { today: "" }] = yield* sql<{ today: string }>`select current_date::text as today`
  for (const model of models) {
    const day = model.hasDay || isAsOf(dataset) ? asOf : today
    for (const books of companies) {
      const is = sorted(yield* rowsOf(dataset, model, books.company, setting))
      const ought = sorted(figures[model.name]!(books, day, isAsOf(dataset) || day >= today))
      rows[model.name] = (rows[model.name] ?? 0) + is.length
      // Both lists are sorted. A row without a counterpart exists on one side only.
      let at = 0
      for (const row of ought) {
        while (at < is.length && is[at]! < row) wrong.push(`${model.name} of company ${books.company} has ${is[at++]!}`)
        if (is[at] === row) at += 1
        else wrong.push(`${model.name} of company ${books.company} lacks ${row}`)
      }
      for (const row of is.slice(at)) wrong.push(`${model.name} of company ${books.company} has ${row}`)
    }
  }
  return { rows, wrong } satisfies Checked
})

/** Resources that the views read. */
export const resourcesOf = (models: ReadonlyArray<Model>): ReadonlyArray<string> =>
  [...new Set(models.flatMap(({ resources }) => resources))].sort()
