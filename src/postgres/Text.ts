/** What a text column can hold of a foreign text: all but NUL, and no half of a character. */
export const sanitizeText = (text: string): string => text.replaceAll("\0", "").toWellFormed()
