/**
 * The metrics of `/metrics`: their text format, and metrics from rows of the warehouse.
 *
 * Promise: a label's value never breaks a line. The warehouse is read at most every few seconds, and concurrent requests
 * share one read. A read never fails and never blocks for long: metrics that cannot be read are left out.
 */
import * as Effect from "effect/Effect"
import * as Record from "effect/Record"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "../postgres/Statement.ts"

/** A metric as Prometheus defines it. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge"
  readonly samples: ReadonlyArray<{ readonly labels?: Readonly<Record<string, string>>; readonly value: number }>
}

const metricOf =
  (type: Metric["type"]) =>
  (name: string, help: string, samples: Metric["samples"]): Metric => ({ name, help, type, samples })
export const gauge = metricOf("gauge")
export const counter = metricOf("counter")

/** Names of metrics with their help texts. */
export type Helps<Name extends string> = Readonly<Record<Name, string>>

/** The columns of a statement whose names are those of metrics. */
export const columns = <Name extends string>(helps: Helps<Name>) => Statement.columns("float8?", ...Record.keys(helps))

/** The metrics with one sample for each row: the column of the metric's name. A null value has no sample. */
export const ofColumns = <Name extends string, Label extends string>(
  metric: typeof gauge,
  helps: Helps<Name>,
  labels: ReadonlyArray<Label>,
  rows: ReadonlyArray<Readonly<Record<NoInfer<Name>, number | null> & Record<NoInfer<Label>, string>>>
): ReadonlyArray<Metric> =>
  Record.keys(helps).map((name) =>
    metric(
      name,
      helps[name],
      rows.flatMap((row) => {
        const value: number | null = row[name]
        return value === null ? [] : [{ labels: Object.fromEntries(labels.map((label) => [label, row[label]])), value }]
      })
    )
  )

const cacheMs = 5_000
const timeoutMs = 2_000

/** Reads the metrics again when the cached ones are older than {@link cacheMs}. */
export const cached = <E>(
  read: Effect.Effect<ReadonlyArray<Metric>, E, SqlClient.SqlClient>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.cachedWithTTL(
      read.pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.timeoutOrElse({ duration: timeoutMs, orElse: () => Effect.succeed([]) }),
        Effect.orElseSucceed(() => [])
      ),
      cacheMs
    )
  )

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labelled = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

/** The text format of Prometheus. */
export const render = (metrics: ReadonlyArray<Metric>): string =>
  metrics
    .map(({ name, help, type, samples }) =>
      [
        `# HELP ${name} ${help.replaceAll("\n", " ")}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(({ labels, value }) => `${name}${labelled(labels ?? {})} ${value}`)
      ].join("\n")
    )
    .join("\n") + "\n"
