/** SQL conditions on rows of `tributary.processes`, the processes of `tributary serve`. */

/** A process that reports nothing for longer has ended; it reports every 20 s. */
const aliveSeconds = 60

/** Whether a process is alive. It takes the alias of the table, or its name. */
export const isAlive = (process: string, now = "tributary.now()"): string =>
  `${process}.stopped_at is null and ${process}.heartbeat_at > ${now} - interval '${aliveSeconds} seconds'`
