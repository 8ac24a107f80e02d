/**
 * A preloaded module: the calendar of the process is ahead of the machine's by the milliseconds in the file
 * `CLOCK_OFFSET_FILE`, which a test replaces to move the clock.
 *
 * Promise: a time that is read after the file was replaced is one of the moved clock.
 */
import { readFileSync } from "node:fs"

const file = process.env["CLOCK_OFFSET_FILE"]
if (file === undefined) throw new Error("CLOCK_OFFSET_FILE is not set: set it to the file with the milliseconds")
const machineNow = Date.now

// Read each time: a request can follow the move of the clock within a millisecond.
Date.now = () => machineNow() + Number(readFileSync(file, "utf8"))
