/** A foreign text as a text column can hold it: without NUL, and lone surrogates replaced. */
export const sanitizeText = (text: string): string => text.replaceAll("\0", "").toWellFormed()
