/** The metrics that `docs/reference/metrics.md` lists, and those of a `/metrics` response, in one form. */
import { readFileSync } from "node:fs"

export interface ListedMetric {
  readonly type: string
  readonly labels: ReadonlyArray<string>
}

const file = new URL("../../docs/reference/metrics.md", import.meta.url)

/** The listed metrics by name. Throws on a row that cannot be parsed, and on a name that is listed twice. */
export const listedMetrics = (): ReadonlyMap<string, ListedMetric> => {
  const all = new Map<string, ListedMetric>()
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (!/^\| `[a-z]/.test(line)) continue
    const [name = "", type = "", labels = "", meaning = ""] = line
      .slice(1)
      .split("|")
      .map((cell) => cell.trim().replaceAll("`", ""))
    if (meaning === "" || all.has(name)) throw new Error(`docs/reference/metrics.md: ${line}`)
    all.set(name, { type, labels: labels === "" ? [] : labels.split(", ").toSorted() })
  }
  return all
}

export interface ReportedMetric extends ListedMetric {
  readonly help: string
  readonly samples: ReadonlyArray<{ readonly labels: Readonly<Record<string, string>>; readonly value: number }>
}

/**
 * The metrics of a response by name, with the labels that all samples have. Throws on text that Prometheus could not
 * parse.
 */
export const parseMetrics = (text: string): ReadonlyMap<string, ReportedMetric> => {
  const all = new Map<string, ReportedMetric>()
  const wrong = (line: string) => new Error(`/metrics: ${line}`)
  let help = ""
  for (const line of text.trimEnd().split("\n")) {
    const comment = /^# (HELP|TYPE) ([a-z_0-9]+) (.+)$/.exec(line)
    if (comment?.[1] === "HELP") {
      help = comment[3]!
      continue
    }
    if (comment !== null) {
      if (all.has(comment[2]!)) throw wrong(line)
      all.set(comment[2]!, { type: comment[3]!, labels: [], help, samples: [] })
      continue
    }
    const sample = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line)
    const metric = all.get(sample?.[1] ?? "")
    if (sample === null || metric === undefined || Number.isNaN(Number(sample[3]))) throw wrong(line)
    const labels = Object.fromEntries(
      [...(sample[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name!, value!])
    )
    const names = Object.keys(labels).toSorted()
    if (metric.samples.length > 0 && names.join() !== metric.labels.join()) throw wrong(line)
    all.set(sample[1]!, {
      ...metric,
      labels: names,
      samples: [...metric.samples, { labels, value: Number(sample[3]) }]
    })
  }
  return all
}
