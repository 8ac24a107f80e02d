/** The blocks of the README: every command, statement and setting that it shows. */
import { it } from "@effect/vitest"
import { readPage } from "./Reader.ts"

it.live("the README has blocks that work as shown", () => readPage("README.md"))
