/** How often a process looks for work that nothing announced, so that hundreds of companies leave statements to the work. */

/** A look for each company each second, while there are few companies. */
const everyMsMin = 1_000
/** Looks of one kind and process are at least so far apart. */
const apartMs = 20

/** The pause between two looks for the same company, where a process looks for so many. */
export const everyMs = (companies: number): number => Math.max(everyMsMin, companies * apartMs)
