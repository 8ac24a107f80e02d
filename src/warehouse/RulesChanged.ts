/**
 * The privacy rules of a process are not those that the stored values of a resource follow.
 *
 * Promise: rules that the warehouse never followed are the newer ones, and are applied by the next process that has them.
 * Rules that others replaced are the older ones: a process that has them lands nothing of the resource and changes nothing,
 * so that two processes with different rules never alternate. Only a person goes back to them.
 */
import * as Data from "effect/Data"

export class RulesChanged extends Data.TaggedError("RulesChanged")<{
  readonly resource: string
  /** Whether the stored values followed the rules of this process before. */
  readonly isReplaced: boolean
}> {
  readonly remedy = this.isReplaced
    ? "run every process with the same configuration and TRIBUTARY_PRIVACY_KEY; to go back to the rules of this one, run tributary schema apply"
    : "tributary sync applies them before it reads"
  override get message(): string {
    return this.isReplaced
      ? `${this.resource}: the privacy rules of this process are older ones, which others have replaced`
      : `${this.resource}: its privacy rules changed, and what is stored does not follow them yet`
  }
}
