/** The objects for Kubernetes have only fields that its API has, with values of their types. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { parseAllDocuments } from "yaml"
import { root } from "../support/reference.ts"
import { textOf } from "./Program.ts"

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly spec?: object
}

/** The module with the types of a version of the API: `apps/v1`, `networking.k8s.io/v1` and, for the core, `v1`. */
const moduleOf = (apiVersion: string) =>
  `kubernetes-types/${apiVersion.includes("/") ? apiVersion.replace(".k8s.io", "") : `core/${apiVersion}`}`

/** The objects as constants of their types: what a type does not allow is an error of the compiler. */
const errorsOf = (objects: ReadonlyArray<KubernetesObject>): ReadonlyArray<string> => {
  const folder = mkdtempSync(join(root, "node_modules", ".kubernetes-"))
  try {
    const file = join(folder, "objects.ts")
    const constants = objects.map(
      (object, index) =>
        `export const object${index}: import("${moduleOf(object.apiVersion)}").${object.kind} = ${JSON.stringify(object)}\n`
    )
    writeFileSync(file, constants.join(""))
    const options = ["--ignoreConfig", "--noEmit", "--strict", "--module", "preserve", "--types", ""]
    const { stdout } = spawnSync(join(root, "node_modules", ".bin", "tsc"), [...options, file], { encoding: "utf8" })
    return stdout.split("\n").filter((line) => /error TS/.test(line))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

it("the objects of config/kubernetes/tributary.yaml have the fields and types of the API", () => {
  const objects = parseAllDocuments(textOf("config/kubernetes/tributary.yaml")).map(
    (document) => document.toJS() as KubernetesObject
  )
  assert.isAbove(objects.length, 3)
  assert.deepStrictEqual(errorsOf(objects), [])
  const wrong = objects.flatMap((object) =>
    object.spec === undefined ? [] : [{ ...object, spec: { ...object.spec, replicaz: 2 } }]
  )
  const errors = errorsOf(wrong)
  assert.strictEqual(errors.length, wrong.length)
  for (const error of errors) assert.include(error, '"replicaz"')
})
