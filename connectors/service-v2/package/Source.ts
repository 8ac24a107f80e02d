/** Parts of TypeScript declarations as text. */

/** A documentation comment on one line. */
export const doc = (text: string, indent = ""): string =>
  text === "" ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`

/** `invoicelines` as the beginning of a type's name. */
export const typeName = (path: string): string => `${path.charAt(0).toUpperCase()}${path.slice(1)}`

export interface Member {
  readonly name: string
  readonly type: string
  readonly comment: string
  readonly isOptional?: boolean
}

/** An interface; every member is read-only. */
export const interfaceOf = (name: string, comment: string, members: ReadonlyArray<Member>): string =>
  `${doc(comment)}export interface ${name} {\n${membersOf(members)}}\n`

/** The lines of the members of an interface. */
export const membersOf = (members: ReadonlyArray<Member>, indent = "  "): string =>
  members
    .map(
      ({ name, type, comment, isOptional = false }) =>
        `${doc(comment, indent)}${indent}readonly ${name}${isOptional ? "?" : ""}: ${type}\n`
    )
    .join("")
