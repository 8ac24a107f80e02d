/**
 * `sync` killed with -9 at drawn places, while records change at the source: the warehouse ends equal, and no page of
 * the first load is landed twice. A place is a request or a landing, not a time, so that a slow machine tries the same.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Chance } from "../../support/Chance.ts"
import { type Moment, never, openTap } from "../../support/tap.ts"
import { makeWorld } from "../../support/world.ts"
