/** The rules of a release: what a commit must have to be published, and what its bill of materials contains. */

export interface ReleaseState {
  readonly manifest: {
    readonly name: string
    readonly version: string
    readonly private?: boolean
    readonly repository?: { readonly url?: string }
    readonly publishConfig?: { readonly provenance?: boolean }
  }
  /** The version in package-lock.json. */
  readonly locked: string
  readonly changelog: string
  readonly dockerfile: string
  /** The output of `git status --porcelain`. */
  readonly changedFiles: string
  readonly tags: ReadonlyArray<string>
}

/** The entry of a version in a changelog by Keep a Changelog; null where there is none. */
const entryOf = (changelog: string, heading: string): string | null =>
  changelog.split(/^## /m).find((one) => one.startsWith(heading)) ?? null

const hasChanges = (entry: string): boolean => /^- /m.test(entry)

/** Why a commit cannot be released, each with the remedy; empty where it can. */
export const problemsOf = (state: ReleaseState): ReadonlyArray<string> => {
  const { version, repository, publishConfig } = state.manifest
  const entry = entryOf(state.changelog, `[${version}] - `)
  const unreleased = entryOf(state.changelog, "[Unreleased]")
  const rules: ReadonlyArray<readonly [isBroken: boolean, problem: string]> = [
    [state.changedFiles !== "", `files are not committed:\n${state.changedFiles}`],
    [
      !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version),
      `version ${version} is no semantic version: npm version --no-git-tag-version`
    ],
    [state.manifest.private === true, "package.json has private: npm pkg delete private"],
    [
      publishConfig?.provenance !== true,
      "package.json has no publishConfig.provenance: npm pkg set publishConfig.provenance=true --json"
    ],
    [
      repository?.url === undefined,
      "package.json has no repository, which provenance needs: npm pkg set repository.type=git repository.url=git+https://…"
    ],
    [state.locked !== version, `package-lock.json has version ${state.locked}: npm install --package-lock-only`],
    [
      !state.dockerfile.includes(`image.version="${version}"`),
      `Dockerfile has another version: set the label image.version to ${version}`
    ],
    [state.tags.includes(`v${version}`), `the tag v${version} exists: npm version --no-git-tag-version`],
    [
      entry === null || !/^\[[^\]]+\] - \d{4}-\d\d-\d\d\s/.test(entry) || !hasChanges(entry),
      `CHANGELOG.md has no entry "## [${version}] - DATE" with changes: move those of Unreleased there`
    ],
    [
      unreleased === null || hasChanges(unreleased),
      "CHANGELOG.md must have an empty entry Unreleased: move its changes to the version"
    ]
  ]
  return rules.flatMap(([isBroken, problem]) => (isBroken ? [problem] : []))
}

export interface BundledPackage {
  readonly name: string
  readonly version: string
}

interface Component {
  readonly "bom-ref": string
  readonly purl: string
  readonly properties?: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

/** A bill of materials in CycloneDX 1.5, as far as a release reads it. */
export interface Bill {
  readonly metadata: {
    readonly component: { readonly name: string; readonly [key: string]: unknown }
    readonly [key: string]: unknown
  }
  readonly components: ReadonlyArray<Component>
  readonly dependencies: ReadonlyArray<{ readonly ref: string; readonly dependsOn: ReadonlyArray<string> }>
  readonly [key: string]: unknown
}

const isDevelopment = ({ properties = [] }: Component): boolean =>
  properties.some(({ name, value }) => name === "cdx:npm:package:development" && value === "true")

/**
 * The bill of the package, from npm's bill of the checkout: what npm installs with the package, and what the bundle
 * contains. Fails where a bundled package is not in npm's bill.
 */
export const billOf = (all: Bill, name: string, bundled: ReadonlyArray<BundledPackage>): Bill => {
  const purls = new Set(bundled.map((one) => `pkg:npm/${one.name.replace("@", "%40")}@${one.version}`))
  const components = all.components.filter((one) => !isDevelopment(one) || purls.has(one.purl))
  const missing = [...purls].filter((purl) => !components.some((one) => one.purl === purl))
  if (missing.length > 0) throw new Error(`npm's bill of materials lacks ${missing.join(", ")}`)
  const refs = new Set(components.map((one) => one["bom-ref"]))
  const bundledRefs = components.filter((one) => purls.has(one.purl)).map((one) => one["bom-ref"])
  return {
    ...all,
    // npm names it by the folder of the checkout.
    metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
    components,
    dependencies: all.dependencies.flatMap(({ ref, dependsOn }, index) => {
      const own = dependsOn.filter((one) => refs.has(one))
      // The first one is the package. It has the bundled packages in itself.
      if (index === 0) return [{ ref, dependsOn: [...new Set([...own, ...bundledRefs])] }]
      return refs.has(ref) ? [{ ref, dependsOn: own }] : []
    })
  }
}
