/** The figures of a snapshot: of each table of a company, and of each model on the last day of the period. */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import { type Client, query } from "../postgres/driver/Connection.ts"
import { type Model, modelsDatasetDefault } from "../warehouse/Model.ts"
import { type Datasets, tableOf } from "../warehouse/Table.ts"
import type { Content, ResourceClose } from "./Document.ts"
import * as Figures from "./Figures.ts"
import type { Period } from "./Period.ts"
import { relationsOf } from "./Snapshot.ts"

export interface FiguresOptions {
  readonly client: Client
  readonly companyId: bigint
  readonly period: Period
  readonly datasets: Datasets
  readonly resources: ReadonlyArray<Resource>
  readonly models: ReadonlyArray<Model>
  /** All resources, for business dates. */
  readonly catalogue: ReadonlyMap<string, Resource>
  /** Runs after each table and model. */
  readonly onRead?: (name: string, count: number) => Effect.Effect<void>
}

export type ResourceFigures = Pick<
  ResourceClose,
  "resource" | "businessDate" | "tombstones" | "table" | "untilEnd" | "period"
>

const readOne = ({ client, companyId }: FiguresOptions, name: string, { text, read }: Figures.FiguresQuery) =>
  Effect.map(query<Record<string, string>>(client, `compute the figures of ${name}`, text, [companyId]), ([row]) =>
    read(row!)
  )

/** The figures of the tables that exist. */
export const ofResources = Effect.fnUntraced(function* (options: FiguresOptions) {
  const { client, datasets, period, catalogue } = options
  const existing = yield* relationsOf(client, [datasets.current])
  const figures: Array<ResourceFigures> = []
  for (const resource of options.resources) {
    const table = tableOf(resource, datasets)
    if (!existing.has(`${datasets.current}.${table.name}`)) continue
    const found = Figures.datedOf(table, catalogue)
    const dated = found === null || existing.has(`${datasets.current}.${found.table.name}`) ? found : null
    const { tombstones, parts } = yield* readOne(options, table.name, Figures.ofTable(table, dated, period))
    figures.push({
      resource: resource.path,
      businessDate: dated === null ? null : Figures.nameOfDate(table, dated),
      tombstones,
      table: parts["table"]!,
      untilEnd: parts["untilEnd"] ?? null,
      period: parts["period"] ?? null
    })
    yield* options.onRead?.(resource.path, parts["table"]!.count) ?? Effect.void
  }
  return figures
})

/** The figures of the models that exist and can be as of the last day. */
export const ofModels = Effect.fnUntraced(function* (options: FiguresOptions) {
  const { client, models, period } = options
  const existing = yield* relationsOf(client, [modelsDatasetDefault])
  const figures: Array<Content["models"][number]> = []
  // The records are those of the snapshot; documents that are dated later do not count.
  yield* query(
    client,
    "set the day of the models",
    "select set_config('tributary.as_of', $1, true), set_config('TimeZone', $2, true)",
    [period.lastDay, period.timeZone]
  )
  for (const model of models) {
    if (!model.hasDay || !existing.has(`${modelsDatasetDefault}.${model.name}`)) continue
    const figuresQuery = Figures.ofModel(model, modelsDatasetDefault)
    if (figuresQuery === null) continue
    const { parts } = yield* readOne(options, model.name, figuresQuery)
    const { count, sums, digest } = parts["table"]!
    figures.push({ model: model.name, count, sums, digest })
    yield* options.onRead?.(model.name, count) ?? Effect.void
  }
  return figures
})
