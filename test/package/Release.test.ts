/** The rules of a release, by what breaks each of them, and its bill of materials. */
import { assert, describe, it } from "@effect/vitest"
import { type Bill, billOf, problemsOf, type ReleaseState } from "../../config/releaseRules.ts"
import { valuesOf } from "../support/rows.ts"

const good: ReleaseState = {
  manifest: {
    name: "tributary-sync",
    version: "1.2.3",
    repository: { url: "git+https://example.com/tributary.git" },
    publishConfig: { provenance: true }
  },
  locked: "1.2.3",
  changelog: "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-29\n\n### Added\n\n- A thing.\n",
  dockerfile: 'LABEL org.opencontainers.image.version="1.2.3"',
  changedFiles: "",
  tags: ["v1.2.2", ""]
}
const { manifest } = good

describe("a release", () => {
  it("has no problem where every rule holds", () => assert.deepStrictEqual(problemsOf(good), []))

  for (const [what, state, problem] of [
    ["files are not committed", { changedFiles: " M src/main.ts" }, /src\/main\.ts/],
    ["the version is not semantic", { manifest: { ...manifest, version: "1.2" } }, /no semantic version/],
    ["the package is private", { manifest: { ...manifest, private: true } }, /has private/],
    ["provenance is off", { manifest: { ...manifest, publishConfig: {} } }, /publishConfig\.provenance/],
    ["the repository is unknown", { manifest: { ...manifest, repository: {} } }, /has no repository/],
    ["the lock has another version", { locked: "1.2.2" }, /package-lock\.json has version 1\.2\.2/],
    ["the image has another version", { dockerfile: "" }, /image\.version to 1\.2\.3/],
    ["the version is tagged", { tags: ["v1.2.3"] }, /the tag v1\.2\.3 exists/],
    ["the changelog lacks the version", { changelog: "## [Unreleased]\n" }, /no entry "## \[1\.2\.3\]/],
    ["the version has no date", { changelog: good.changelog.replace(" - 2026-11-29", " - soon") }, /no entry/],
    ["the version has no changes", { changelog: good.changelog.replace("- A thing.", "") }, /no entry/],
    [
      "changes are unreleased",
      { changelog: good.changelog.replace("## [1", "- Another thing.\n\n## [1") },
      /empty entry Unreleased/
    ]
  ] as const)
    it(`is refused where ${what}`, () => {
      const problems = problemsOf({ ...good, ...state })
      assert.isTrue(
        problems.some((one) => problem.test(one)),
        problems.join("\n")
      )
    })

  it("has a bill of what npm installs with it and of what the bundle contains, without tools of development", () => {
    const component = (name: string, isDevelopment: boolean) => ({
      "bom-ref": `${name}@1.0.0`,
      purl: `pkg:npm/${name.replace("@", "%40")}@1.0.0`,
      properties: isDevelopment ? [{ name: "cdx:npm:package:development", value: "true" }] : []
    })
    const all: Bill = {
      metadata: { component: { name: "folder" } },
      components: [component("pg", false), component("@effect/sql-pg", true), component("vitest", true)],
      dependencies: [
        { ref: "tributary-sync@1.0.0", dependsOn: ["pg@1.0.0"] },
        { ref: "vitest@1.0.0", dependsOn: ["pg@1.0.0"] },
        { ref: "@effect/sql-pg@1.0.0", dependsOn: ["pg@1.0.0", "vitest@1.0.0"] }
      ]
    }
    const bill = billOf(all, "tributary-sync", [{ name: "@effect/sql-pg", version: "1.0.0" }])
    assert.strictEqual(bill.metadata.component.name, "tributary-sync")
    assert.deepStrictEqual(valuesOf(bill.components, "purl"), ["pkg:npm/pg@1.0.0", "pkg:npm/%40effect/sql-pg@1.0.0"])
    assert.deepStrictEqual(bill.dependencies, [
      { ref: "tributary-sync@1.0.0", dependsOn: ["pg@1.0.0", "@effect/sql-pg@1.0.0"] },
      { ref: "@effect/sql-pg@1.0.0", dependsOn: ["pg@1.0.0"] }
    ])
    assert.throws(() => billOf(all, "tributary-sync", [{ name: "effect", version: "4.1.0" }]), /effect@4\.1\.0/)
  })
})
