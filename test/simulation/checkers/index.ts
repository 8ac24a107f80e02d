/** Every checker, in the order in which they are asked: the first that objects is told. */
import { bounded } from "./bounded.ts"
import type { CheckerOf } from "./Checker.ts"
import { cursor } from "./cursor.ts"
import { equal } from "./equal.ts"
import { fence } from "./fence.ts"
import { forward } from "./forward.ts"
import { genuine } from "./genuine.ts"
import { history } from "./history.ts"
import { ledger } from "./ledger.ts"
import { lively } from "./lively.ts"
import { polite } from "./polite.ts"
import { progress } from "./progress.ts"

export const checkers: ReadonlyArray<CheckerOf> = [
  fence,
  genuine,
  forward,
  cursor,
  progress,
  equal,
  lively,
  history,
  ledger,
  polite,
  bounded
]
