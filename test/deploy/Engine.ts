/**
 * Containers without Docker: a script named `docker` that gives its commands to buildah and podman (Debian packages, as
 * root), and the base image of the Dockerfile, made of Debian's packages and the Node of the checkout.
 *
 * Images, containers and their state are in one temporary folder. Nothing of the machine's own images is used or changed.
 */
import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { root } from "../support/reference.ts"
import { makeFolder } from "../support/servers.ts"

export interface Result {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Engine {
  readonly folder: string
  /** Runs a line of shell, in which `docker` is the script, in a folder. */
  readonly shell: (line: string, cwd: string, env?: Readonly<Record<string, string>>) => Result
  /** Removes all containers, images and files. */
  readonly close: () => void
}

const packages: Readonly<Record<string, string>> = {
  buildah: "buildah",
  podman: "podman",
  runc: "runc",
  debootstrap: "debootstrap"
}

const isInstalled = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0

/** Installs the Debian packages that are missing. */
const installPackages = () => {
  const missing = Object.entries(packages).flatMap(([program, name]) => (isInstalled(program) ? [] : [name]))
  if (missing.length === 0) return
  const options = { stdio: "inherit", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } } as const
  execFileSync("apt-get", ["update", "-qq"], options)
  execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...missing], options)
}

/** The base image that the Dockerfile names. */
const baseName = /^FROM (\S+)/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))![1]!

const textOf = (program: string, ...args: ReadonlyArray<string>) =>
  execFileSync(program, args, { encoding: "utf8" }).trim()

/** Debian's smallest system as an archive, which is kept for further runs. */
const debianArchive = (folder: string): string => {
  const release = textOf("sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"')
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "tributary")
  const archive = join(cache, `debian-${release}.tar`)
  if (existsSync(archive)) return archive
  const sources = textOf("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)").split("\n")
  const mirror = sources.find((line) => line.startsWith(`${release} `))!.split(" ")[1]!
  const system = join(folder, "system")
  const quiet: ExecFileSyncOptions = { stdio: ["ignore", "ignore", "inherit"] }
  execFileSync("debootstrap", ["--variant=minbase", "--include=libstdc++6", release, system, mirror], quiet)
  mkdirSync(cache, { recursive: true })
  const unneeded = ["./dev", "./proc", "./sys", "./var/cache/apt", "./var/lib/apt/lists"]
  const draft = `${archive}.${process.pid}`
  execFileSync("tar", ["-C", system, "-cf", draft, ...unneeded.map((path) => `--exclude=${path}/*`), "."], quiet)
  renameSync(draft, archive)
  rmSync(system, { recursive: true })
  return archive
}

/** The base image: Debian, this Node, and the npm of this machine. */
const baseCommands = (archive: string): string => `set -e
  c=$(buildah from scratch)
  buildah add --quiet "$c" ${archive} /
  buildah copy --quiet "$c" ${process.execPath} /usr/local/bin/node
  buildah copy --quiet "$c" "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" /usr/local/lib/node_modules/npm
  buildah run --isolation chroot "$c" -- ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$c"
  buildah commit --quiet --rm --format docker "$c" docker.io/library/${baseName}`

/** The settings by which npm of this machine reaches its registry, for npm within a build. */
const npmSettings = (folder: string): ReadonlyArray<string> => {
  const settings = ["registry", "cafile", "proxy", "https-proxy"].flatMap((name) => {
    const value = textOf("npm", "config", "get", name)
    const isSet = value !== "null" && value !== ""
    const authorities = name === "cafile" ? process.env["NODE_EXTRA_CA_CERTS"] : undefined
    return isSet ? [[name, value] as const] : authorities === undefined ? [] : [[name, authorities] as const]
  })
  const file = join(folder, "npmrc")
  writeFileSync(file, settings.map(([name, value]) => `${name}=${value}\n`).join(""))
  const authorities = settings.flatMap(([name, value]) => (name === "cafile" ? [`${value}:${value}:ro`] : []))
  return [`${file}:/usr/local/etc/npmrc:ro`, ...authorities].map((volume) => `--volume ${volume}`)
}

/** The script `docker`. Containers share the network of the machine. */
const dockerScript = (volumes: ReadonlyArray<string>) => `#!/bin/sh
command=$1
shift
case $command in
  build) exec buildah build --isolation chroot --pull-never --format docker ${volumes.join(" ")} "$@" ;;
  run) exec podman run --network host --pull never "$@" ;;
  *) exec podman "$command" "$@" ;;
esac
`

/** Where images, containers and their state are. The limits are low: podman's own are more than a sandbox allows. */
const configurationOf = (folder: string): Readonly<Record<string, string>> => {
  const storage = join(folder, "storage.conf")
  const containers = join(folder, "containers.conf")
  const state = join(folder, "run")
  writeFileSync(storage, `[storage]\ndriver = "vfs"\ngraphroot = "${join(folder, "images")}"\nrunroot = "${state}"\n`)
  writeFileSync(
    containers,
    `[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n` +
      `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ntmp_dir = "${state}"\n`
  )
  // Health checks run when they are asked for, not by timers of systemd.
  return { CONTAINERS_STORAGE_CONF: storage, CONTAINERS_CONF: containers, DISABLE_HC_SYSTEMD: "true" }
}

export const makeEngine = (): Engine => {
  installPackages()
  const folder = makeFolder("image")
  const bin = join(folder, "bin")
  mkdirSync(bin)
  const script = join(bin, "docker")
  writeFileSync(script, dockerScript(npmSettings(folder)))
  chmodSync(script, 0o755)
  const own = {
    ...process.env,
    ...configurationOf(folder),
    PATH: [bin, process.env["PATH"]].join(delimiter)
  }
  const shell: Engine["shell"] = (line, cwd, env = {}) => {
    const { status, stdout, stderr } = spawnSync("sh", ["-c", line], {
      cwd,
      env: { ...own, ...env },
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024
    })
    return { code: status, stdout, stderr }
  }
  const close = () => {
    shell("podman rm --all --force --time 0; buildah rm --all; podman rmi --all --force", folder)
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    if (!baseName.startsWith(`node:${process.versions.node}-`)) throw new Error(`this is not the Node of ${baseName}`)
    const { code, stderr } = shell(baseCommands(debianArchive(folder)), folder)
    if (code !== 0) throw new Error(`the base image cannot be made: ${stderr}`)
    return { folder, shell, close }
  } catch (error) {
    close()
    throw error
  }
}

/** The size of an image in bytes, and of its base. */
export const sizesOf = ({ folder, shell }: Engine, image: string): readonly [number, number] => {
  const sizeOf = (name: string) => Number(shell(`podman image inspect --format '{{.Size}}' ${name}`, folder).stdout)
  return [sizeOf(image), sizeOf(baseName)]
}
