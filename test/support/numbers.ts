/** A small generator of numbers, so that a failure repeats: each call returns a whole number below the limit. */
export const numbers = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}
