/** Every checker, in the order in which they run. The first violation is reported. */
import { accepted } from "./accepted.ts"
import { alone } from "./alone.ts"
import { announced } from "./announced.ts"
import { behind } from "./behind.ts"
import { bounded } from "./bounded.ts"
import type { CheckerOf } from "./Checker.ts"
import { cursor } from "./cursor.ts"
import { drained } from "./drained.ts"
import { equal } from "./equal.ts"
import { fed } from "./fed.ts"
import { fence } from "./fence.ts"
import { forward } from "./forward.ts"
import { forged } from "./forged.ts"
import { genuine } from "./genuine.ts"
import { history } from "./history.ts"
import { ledger } from "./ledger.ts"
import { lively } from "./lively.ts"
import { past } from "./past.ts"
import { polite } from "./polite.ts"
import { progress } from "./progress.ts"
import { proven } from "./proven.ts"
import { recovered } from "./recovered.ts"
import { restored } from "./restored.ts"
import { settled } from "./settled.ts"
import { single } from "./single.ts"
import { upgraded } from "./upgraded.ts"
import { verified } from "./verified.ts"
import { welcome } from "./welcome.ts"
import { withheld } from "./withheld.ts"

export const checkers: ReadonlyArray<CheckerOf> = [
  accepted,
  forged,
  welcome,
  settled,
  proven,
  announced,
  single,
  drained,
  fence,
  genuine,
  forward,
  restored,
  upgraded,
  cursor,
  recovered,
  progress,
  withheld,
  equal,
  verified,
  lively,
  history,
  past,
  fed,
  ledger,
  polite,
  alone,
  behind,
  bounded
]
