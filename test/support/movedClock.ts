/**
 * A preloaded module: the calendar of the process is ahead of the machine's by the milliseconds in the file
 * `CLOCK_OFFSET_FILE`, which a test replaces to move the clock.
 */
import { readFileSync } from "node:fs"

/** Milliseconds for which an offset that was read stays valid. */
const readEveryMs = 5

const file = process.env["CLOCK_OFFSET_FILE"]
if (file === undefined) throw new Error("CLOCK_OFFSET_FILE is not set: set it to the file with the milliseconds")
const read = () => Number(readFileSync(file, "utf8"))
const machineNow = Date.now
let offsetMs = read()
let readAt = machineNow()

Date.now = () => {
  const now = machineNow()
  if (now - readAt > readEveryMs) {
    offsetMs = read()
    readAt = now
  }
  return now + offsetMs
}
