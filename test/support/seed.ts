/**
 * Property tests draw the same values in each run: a failure depends on a change, not on chance. `SEED=N` draws others.
 */
import fc from "fast-check"

fc.configureGlobal({ seed: Number(process.env["SEED"] ?? 20260316) })
