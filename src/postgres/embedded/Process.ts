/**
 * Processes of this machine, identified although process ids are reused.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { errnoOf } from "./Failure.ts"

/** The polling interval of a wait for a process or a file. */
export const pollMs = 25

const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) !== "ESRCH"
  }
}

/** When a process was started, to tell it from a later one with the same id. Known on Linux only; elsewhere "0". */
const startOf = (pid: number): string => {
  try {
    // The name in brackets may hold spaces: count fields from behind it. starttime is field 22.
    return (
      readFileSync(`/proc/${pid}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ")[19] ?? "0"
    )
  } catch {
    return "0"
  }
}

/** Whether this process is a running Postgres: not a zombie, and not another program that got the id later. */
const isPostgres = (pid: number): boolean => {
  if (!Number.isInteger(pid) || pid <= 0 || !exists(pid)) return false
  if (process.platform !== "linux") return true
  try {
    // A process keeps its name until its end; its command line is already empty while it ends.
    const status = readFileSync(`/proc/${pid}/status`, "latin1")
    return /^Name:\s+postgres$/m.test(status) && !/^State:\s+[ZX]/m.test(status)
  } catch {
    return false
  }
}

/** The output of a program of the system; undefined where it cannot run. */
const printed = (file: string, args: ReadonlyArray<string>): string | undefined => {
  try {
    return execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], windowsHide: true })
  } catch (error) {
    // `ps` prints nothing and exits with 1 where there is no such process.
    return errnoOf(error) === undefined ? "" : undefined
  }
}

const startToleranceMs = 60_000

/** When a process began, in ms since 1970, as far as the clock of the machine was right then. Linux only. */
const beganAtMs = (pid: number): number => {
  const boot = /^btime (\d+)$/m.exec(readFileSync("/proc/stat", "latin1"))?.[1]
  // Linux counts in ticks of 10 ms, whatever its kernel's own tick is.
  return Number(boot) * 1000 + Number(startOf(pid)) * 10
}

/**
 * Whether this process is the server of a data folder: Postgres enters its folder when it starts and never leaves it.
 * `startedAtMs` is the start time in `postmaster.pid`; it decides where the folder of a process cannot be seen. The
 * server of another cluster does not count, although it may have got the same id after a restart of the machine or
 * container.
 */
export const isServerOf = (folder: string, pid: number, startedAtMs: number): boolean => {
  if (!isPostgres(pid)) return false
  switch (process.platform) {
    case "linux":
      try {
        const [its, ours] = [statSync(`/proc/${pid}/cwd`), statSync(folder)]
        return its.dev === ours.dev && its.ino === ours.ino
      } catch {
        return Math.abs(beganAtMs(pid) - startedAtMs) < startToleranceMs
      }
    case "win32": {
      const line = printed("tasklist", ["/FI", `PID eq ${pid}`, "/FO", "CSV", "/NH"])
      return line === undefined || /^"postgres/im.test(line)
    }
    default: {
      const line = printed("ps", ["-p", String(pid), "-o", "command="])
      return line === undefined || line.includes(folder)
    }
  }
}

/** A process in a name: its id, and its start to tell it from a later one with the same id. */
export const nameOf = (pid: number) => `${pid}.${startOf(pid)}`

/** Whether the process with this name is alive. */
export const isAlive = (name: string): boolean => {
  const pid = Number(name.split(".")[0])
  return Number.isInteger(pid) && pid > 0 && exists(pid) && nameOf(pid) === name
}
