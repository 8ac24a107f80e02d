/** Options without the members that are undefined: an undefined option has its default. */
export const defined = <A extends object>(options: A): { readonly [Name in keyof A]: Exclude<A[Name], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    readonly [Name in keyof A]: Exclude<A[Name], undefined>
  }
