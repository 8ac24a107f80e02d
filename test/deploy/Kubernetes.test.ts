/** The files for Kubernetes: they fit the types of its API, and what they name exists in the program. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { parse, parseAllDocuments } from "yaml"
import { saveCompany } from "../support/companies.ts"
import { layerWarehouse, sql } from "../support/postgres.ts"
import { test } from "../support/suite.ts"
import { healthPaths, manifest, stopSeconds, textOf, unknownFlags, variables } from "./Program.ts"
import { loadText } from "../support/configuration.ts"

const Labels = Schema.Record(Schema.String, Schema.String)
const Probe = Schema.Struct({ httpGet: Schema.Struct({ path: Schema.String, port: Schema.String }) })
const ConfigMap = Schema.Struct({ kind: Schema.Literal("ConfigMap"), data: Labels })
const Deployment = Schema.Struct({
  kind: Schema.Literal("Deployment"),
  spec: Schema.Struct({
    template: Schema.Struct({
      metadata: Schema.Struct({ annotations: Labels }),
      spec: Schema.Struct({
        terminationGracePeriodSeconds: Schema.Int,
        containers: Schema.Tuple([
          Schema.Struct({
            image: Schema.String,
            args: Schema.Array(Schema.String),
            ports: Schema.Array(Schema.Struct({ name: Schema.String, containerPort: Schema.Int })),
            startupProbe: Probe,
            livenessProbe: Probe,
            readinessProbe: Probe
          })
        ])
      })
    })
  })
})
const Service = Schema.Struct({
  kind: Schema.Literal("Service"),
  spec: Schema.Struct({
    ports: Schema.Array(Schema.Struct({ name: Schema.String, targetPort: Schema.String }))
  })
})

describe("config/kubernetes/tributary.yaml", () => {
  const file = "config/kubernetes/tributary.yaml"
  const documents = parseAllDocuments(textOf(file)).map((document) => {
    assert.deepStrictEqual(document.errors, [])
    return document.toJS() as unknown
  })
  const one = <S extends Schema.ConstraintDecoder<unknown>>(schema: S): S["Type"] => {
    const matches = documents.filter(Schema.is(schema))
    assert.strictEqual(matches.length, 1)
    return matches[0]!
  }
  const { template } = one(Deployment).spec
  const [container] = template.spec.containers

  it("probes existing paths on ports of the container", () => {
    const names = container.ports.map(({ name }) => name)
    for (const [{ httpGet }, path] of [
      [container.startupProbe, "/healthz"],
      [container.livenessProbe, "/healthz"],
      [container.readinessProbe, "/readyz"]
    ] as const) {
      assert.strictEqual(httpGet.path, path)
      assert.include(names, httpGet.port)
      assert.include(healthPaths, path)
    }
    assert.include(healthPaths, template.metadata.annotations["prometheus.io/path"]!)
    const monitoring = container.ports.find(({ name }) => name === "monitoring")!
    assert.strictEqual(template.metadata.annotations["prometheus.io/port"], String(monitoring.containerPort))
    // Health and metrics are for the cluster. No Service exposes them.
    assert.sameMembers(
      one(Service).spec.ports.map(({ targetPort }) => targetPort),
      names.filter((name) => name !== monitoring.name)
    )
    assert.isAbove(template.spec.terminationGracePeriodSeconds, stopSeconds)
    assert.deepStrictEqual(unknownFlags(container.args), [])
    assert.match(container.image, new RegExp(`:${manifest.version.replaceAll(".", "\\.")}$`))
  })

  test("configures the program with the variables of the Secret on its page", function* () {
    const secret = [...textOf("docs/how-to/kubernetes.md").matchAll(/--from-literal=(\w+)=/g)].map((match) => match[1]!)
    const yaml = one(ConfigMap).data["tributary.yaml"]!
    const given = (names: ReadonlyArray<string>) => Object.fromEntries(names.map((name) => [name, "long enough"]))
    const settings = yield* loadText(yaml, given(secret))
    assert.deepStrictEqual(
      [settings.webhooks.port, settings.dashboard?.port, settings.monitoring.listen?.port],
      container.ports.map(({ containerPort }) => containerPort)
    )
    for (const name of secret) {
      assert.isTrue(variables.includes(name) || yaml.includes(`token_env: ${name}`), name)
      if (name === "DATABASE_URL") continue
      assert.include(
        (yield* Effect.flip(loadText(yaml, given(secret.filter((other) => other !== name))))).message,
        name
      )
    }
  })
})

describe("config/kubernetes/autoscaler.yaml", () => {
  const scaled = Schema.decodeUnknownSync(
    Schema.Struct({
      kind: Schema.Literal("ScaledObject"),
      spec: Schema.Struct({
        triggers: Schema.Tuple([
          Schema.Struct({
            type: Schema.Literal("postgresql"),
            metadata: Schema.Struct({
              connectionFromEnv: Schema.String,
              query: Schema.String,
              targetQueryValue: Schema.NumberFromString
            })
          })
        ])
      })
    })
  )(parse(textOf("config/kubernetes/autoscaler.yaml"))).spec

  it.effect("counts the tasks that wait for a process", () =>
    Effect.gen(function* () {
      const waiting = Effect.map(
        sql.unsafe<{ count: bigint }>(scaled.triggers[0].metadata.query),
        ([row]) => row!.count
      )
      assert.strictEqual(yield* waiting, 0n)
      yield* saveCompany("main", 1n)
      yield* sql`insert into tributary.tasks (company, resource, kind, next_run_at, paused_at) values
        ('main', 'waiting', 'sync', tributary.now() - interval '2 minutes', null),
        ('main', 'just due', 'sync', tributary.now(), null),
        ('main', 'running', 'sync', tributary.now() - interval '2 minutes', null),
        ('main', 'paused', 'sync', tributary.now() - interval '2 minutes', tributary.now())`
      yield* sql`insert into tributary.runs (company_id, resource, kind, fence, started_at)
        values (1, 'running', 'full', 1, tributary.now())`
      assert.strictEqual(yield* waiting, 1n)
    }).pipe(Effect.provide(layerWarehouse))
  )
})
