/** Parts of TypeScript declarations as text. */

/** A documentation comment on one line. */
const doc = (text: string, indent = ""): string =>
  text === "" ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`

/** `invoicelines` as the beginning of a type's name. */
export const typeName = (path: string): string => `${path.charAt(0).toUpperCase()}${path.slice(1)}`

export interface Member {
  readonly name: string
  readonly type: string
  readonly comment: string
}

/** An interface; every member is read-only. */
export const interfaceOf = (name: string, comment: string, members: ReadonlyArray<Member>): string => {
  const lines = members.map((member) => `${doc(member.comment, "  ")}  readonly ${member.name}: ${member.type}\n`)
  return `${doc(comment)}export interface ${name} {\n${lines.join("")}}\n`
}
