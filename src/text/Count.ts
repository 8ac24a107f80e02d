/** Numbers with their words, for messages, pages and reports. */

/** 12345 as 12,345; at most three decimals. Without `Intl`, whose first use costs a command 15 ms. */
export const count = (value: number | bigint): string => {
  const [whole = "", decimals] = String(typeof value === "bigint" ? value : Math.round(value * 1000) / 1000).split(".")
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ",")
  return decimals === undefined ? grouped : `${grouped}.${decimals}`
}

/** `1 record`, `1,200 records`; with a verb: `plural(n, "record is", "records are")`. */
export const plural = (value: number | bigint, one: string, many = `${one}s`): string =>
  `${count(value)} ${Number(value) === 1 ? one : many}`
