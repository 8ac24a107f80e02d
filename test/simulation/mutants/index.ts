/** Every planted bug. */
import { client } from "./client.ts"
import { extract } from "./extract.ts"
import { installations } from "./installations.ts"
import { land } from "./land.ts"
import type { Mutant } from "./Mutant.ts"
import { owner } from "./owner.ts"
import { push } from "./push.ts"
import { reader } from "./reader.ts"
import { rules } from "./rules.ts"
import { webhook } from "./webhook.ts"

export const mutants: ReadonlyArray<Mutant> = [
  client,
  extract,
  land,
  webhook,
  push,
  owner,
  reader,
  rules,
  installations
].flatMap((bugs) => Object.entries(bugs).map(([name, bug]) => ({ ...bug, name, origin: bug.why[0] })))
