/** A check of the dashboard and the alerts: they use only metrics and labels that `docs/reference/metrics.md` lists. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { parse } from "yaml"
import { listedMetrics } from "../support/metrics.ts"
import { assertNone } from "../support/assertions.ts"

const textOf = (path: string) => readFileSync(new URL(`../../config/${path}`, import.meta.url), "utf8")

/** Labels that Prometheus adds to every sample. */
const always = ["instance", "job"]

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

/** The text under a key, or an empty text. */
const textIn = (of: Record<string, unknown>, key: string): string => (typeof of[key] === "string" ? of[key] : "")

/** Every value under this key, at any depth. */
const under = (key: string, value: unknown): ReadonlyArray<unknown> =>
  !isObject(value)
    ? []
    : Object.entries(value).flatMap(([name, inner]) => [...(name === key ? [inner] : []), ...under(key, inner)])

const words = /[a-zA-Z_:][a-zA-Z0-9_:]*/g

/** The mistakes of an expression, according to the list. */
const wrongIn = (expression: string): ReadonlyArray<string> => {
  const metrics = listedMetrics()
  const bare = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""')
  const names = [...bare.matchAll(words)]
    .map(([word]) => word)
    .filter((word) => /^(?:tributary|process|nodejs)_/.test(word))
  const knownNames = names.filter((name) => metrics.has(name))
  const labels = new Set([...always, ...knownNames.flatMap((name) => metrics.get(name)!.labels)])
  const selectors = [...bare.matchAll(/([a-z_0-9]+)\{([^}]*)\}/g)].flatMap(([, name = "", inner = ""]) =>
    [...inner.matchAll(/([a-z_]+)\s*[=!]/g)]
      .map(([, label]) => label!)
      .filter((label) => ![...always, ...(metrics.get(name)?.labels ?? [])].includes(label))
      .map((label) => `${name} has no label ${label}`)
  )
  const groups = [...bare.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, inner = ""]) =>
    inner
      .split(",")
      .map((label) => label.trim())
      .filter((label) => label !== "" && !labels.has(label))
      .map((label) => `no metric of ${expression} has a label ${label}`)
  )
  return [
    ...names.filter((name) => !metrics.has(name)).map((name) => `${name} is not listed`),
    ...(names.length === 0 ? [`${expression} names no metric`] : []),
    ...selectors,
    ...groups
  ]
}

/** The metrics that the text names. */
const namedIn = (text: string) => [...listedMetrics().keys()].filter((name) => new RegExp(`\\b${name}\\b`).test(text))

describe("the monitoring configuration", () => {
  it("is checked for unlisted metrics and labels", () => {
    assert.deepStrictEqual(wrongIn("sum by (company) (tributary_rows)"), [])
    assert.deepStrictEqual(wrongIn("tributary_nothing > 0"), ["tributary_nothing is not listed"])
    assert.deepStrictEqual(wrongIn('tributary_rows{colour="red"}'), ["tributary_rows has no label colour"])
    assert.lengthOf(wrongIn("max by (colour) (tributary_rows)"), 1)
  })

  it("has alerts on listed metrics, each with a summary, a remedy and a test", () => {
    const rules = under("rules", parse(textOf("prometheus/alerts.yml"))).flat()
    assert.isAtLeast(rules.length, 9)
    for (const rule of rules) {
      assert.isTrue(isObject(rule) && isObject(rule["annotations"]) && isObject(rule["labels"]))
      if (!isObject(rule) || !isObject(rule["annotations"]) || !isObject(rule["labels"])) continue
      assert.match(textIn(rule, "alert"), /^Tributary[A-Z]/)
      assert.deepStrictEqual(wrongIn(textIn(rule, "expr")), [])
      assert.isAbove(textIn(rule["annotations"], "summary").length, 20)
      assert.isAbove(textIn(rule["annotations"], "what_to_do").length, 20)
      assert.include(["page", "ticket"], rule["labels"]["severity"])
    }
    const names = rules.map((rule) => (isObject(rule) ? rule["alert"] : null))
    assert.strictEqual(new Set(names).size, names.length)
    // The rules' own tests check for each alert that it fires or does not fire.
    const tests = textOf("prometheus/alerts.test.yml")
    assertNone(names, (name) => !tests.includes(String(name)))
  })

  it("has a dashboard that uses only listed metrics and covers the important ones", () => {
    const text = textOf("grafana/tributary.json")
    const dashboard: unknown = JSON.parse(text)
    const expressions = under("expr", dashboard).map(String)
    assert.isAtLeast(expressions.length, 30)
    assert.deepStrictEqual(expressions.flatMap(wrongIn), [])
    const ids = under("panels", dashboard)
      .flat()
      .map((panel) => (isObject(panel) ? panel["id"] : null))
    assert.strictEqual(new Set(ids).size, ids.length)
    const shown = new Set([...namedIn(text), ...namedIn(textOf("prometheus/alerts.yml"))])
    assert.deepStrictEqual(
      [...listedMetrics().keys()].filter((name) => !shown.has(name)),
      [
        "tributary_alert_conditions",
        "tributary_budget_paused_by",
        "tributary_source_received_bytes_total",
        "tributary_webhook_last_accepted_timestamp_seconds",
        "tributary_webhook_stale_age_seconds",
        "tributary_webhook_inbox_queue_events",
        "tributary_webhook_inbox_queue_bytes",
        "tributary_webhook_inbox_commits_total"
      ],
      "metrics that neither shows"
    )
  })
})
