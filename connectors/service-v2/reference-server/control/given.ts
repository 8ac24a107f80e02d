/** Checks of the input of control calls, with messages for invalid input. */
import type { Table } from "../store/Table.ts"
import type { World } from "../World.ts"

/** An error message for the caller. */
export class ControlError extends Error {
  override readonly name = "ControlError"
}

export type CallInput = Readonly<Record<string, unknown>>

export const only = (input: CallInput, names: ReadonlyArray<string>): void => {
  const unknown = Object.keys(input).find((name) => !names.includes(name))
  if (unknown !== undefined) throw new ControlError(`there is no "${unknown}" here; there are: ${names.join(", ")}`)
}

export const wholeNumber = (input: CallInput, name: string, least: number, absent: number): number => {
  const value = input[name]
  if (value === undefined) return absent
  if (!Number.isSafeInteger(value) || Number(value) < least) {
    throw new ControlError(`${name} must be a whole number from ${least}`)
  }
  return value as number
}

export const flag = (input: CallInput, name: string, absent: boolean): boolean => {
  const value = input[name]
  if (value === undefined) return absent
  if (typeof value !== "boolean") throw new ControlError(`${name} must be true or false`)
  return value
}

/** The company number of a body or a query. */
export const companyOf = (company: unknown): number => {
  const number = typeof company === "string" ? Number(company) : company
  if (!Number.isSafeInteger(number) || Number(number) < 1) {
    throw new ControlError("company must be a whole number from 1")
  }
  return Number(number)
}

/** The table that a call selects. */
export const tableOf = (world: World, company: unknown, resource: unknown): Table => {
  if (typeof resource !== "string" || !world.store.catalogue.resources.has(resource)) {
    throw new ControlError(`there is no resource ${String(resource)}`)
  }
  return world.store.table(companyOf(company), resource)
}
