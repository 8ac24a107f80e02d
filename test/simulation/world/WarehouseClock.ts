/**
 * The warehouse's clock, set back (class K3).
 *
 * Promise: either the clock is ahead from the beginning and is corrected once, or it is set back for a while and then
 * corrected. A step back is longer than the minute that the product accepts as an ordinary correction. After healing
 * the clock is right, but rows and checkpoints may still have stamps in its future. Not with webhooks: an event may
 * arrive while the clock is behind and be pending after the correction. It would then be compared with reads of the
 * earlier clock.
 */
import { chance } from "../kernel/Chance.ts"
import { Actor } from "../kernel/Scene.ts"
import { momentOf } from "../Plan.ts"

const second = 1_000_000

export class WarehouseClock extends Actor {
  /** How far the clock is ahead, in microseconds. */
  aheadMicros = 0
  /** How far it was ahead before, and until when. */
  private readonly earlierSettings: Array<{ readonly aheadMicros: number; readonly until: number }> = []

  begin(): void {
    const { drawn, kernel } = this
    const draw = chance(drawn.seed, "warehouse clock")
    const step = draw.skewed(90 * second, 12 * 3600 * second)
    if (drawn.later.clockStep === 0) return
    const at = momentOf(drawn, 0.15 + 0.7 * draw.next())
    if (drawn.later.clockStep < 0.5) {
      this.set(step, "is ahead")
      kernel.after(at, null, () => this.set(0, "is set right, back"))
      return
    }
    kernel.after(at, null, () => this.set(-step, "is set back"))
    kernel.after(at + draw.skewed(second, 40 * second), null, () => this.set(0, "is right again"))
  }

  heal(): void {
    if (this.aheadMicros !== 0) this.set(0, "is right again")
  }

  /** The earliest time that this clock may have shown as `shown`, in microseconds. */
  earliestOf(shown: number): number {
    const earlier = this.earlierSettings.flatMap(({ aheadMicros, until }) =>
      shown - aheadMicros < until ? [shown - aheadMicros] : []
    )
    return Math.min(shown - this.aheadMicros, ...earlier)
  }

  private set(aheadMicros: number, what: string): void {
    if (this.aheadMicros === aheadMicros) return
    this.earlierSettings.push({ aheadMicros: this.aheadMicros, until: this.kernel.now })
    this.aheadMicros = aheadMicros
    this.log("db", `! K3 the clock ${what}: ${aheadMicros / second} s ahead`)
    this.fired(`K3 the clock ${what}`)
  }
}
