/** The requests of this process that wait for a permit: by class, and within a class by their due time. */
import * as Effect from "effect/Effect"
import type { BudgetError } from "./BudgetError.ts"
import { type ByClass, classes, type PriorityClass } from "./PermitPolicy.ts"

export interface PermitWaiter {
  readonly dueAt: number
  readonly resume: (effect: Effect.Effect<void, BudgetError>) => void
}

export type PermitWaiters = ByClass<Array<PermitWaiter>>

export const hasWaiters = (waiters: PermitWaiters): boolean => classes.some((one) => waiters[one].length > 0)

export const addWaiter = (waiters: PermitWaiters, priority: PriorityClass, waiter: PermitWaiter): void => {
  const queue = waiters[priority]
  let position = queue.length
  while (position > 0 && queue[position - 1]!.dueAt > waiter.dueAt) position -= 1
  queue.splice(position, 0, waiter)
}

export const removeWaiter = (waiters: PermitWaiters, priority: PriorityClass, waiter: PermitWaiter): void => {
  const index = waiters[priority].indexOf(waiter)
  if (index >= 0) waiters[priority].splice(index, 1)
}

export const nextWaiter = ({ backfill, live, urgent }: PermitWaiters): PermitWaiter | undefined =>
  urgent.shift() ?? live.shift() ?? backfill.shift()

export const failWaiters = (waiters: PermitWaiters, error: BudgetError): void => {
  for (const one of classes) for (const waiter of waiters[one].splice(0)) waiter.resume(Effect.fail(error))
}
