/** Every checker of pushes, in the order in which they run. */
import type { PushCheckerOf } from "./PushChecker.ts"
import { pushKeys } from "./pushKeys.ts"
import { pushKnown } from "./pushKnown.ts"
import { pushLanded } from "./pushLanded.ts"
import { pushLedger } from "./pushLedger.ts"
import { pushMerge } from "./pushMerge.ts"
import { pushOnce } from "./pushOnce.ts"

export const pushCheckers: ReadonlyArray<PushCheckerOf> = [
  pushKeys,
  pushOnce,
  pushMerge,
  pushLedger,
  pushKnown,
  pushLanded
]
