/** What a reader sees of the markup of a page, and where its list continues. */
import * as Effect from "effect/Effect"

/** The visible text, without tags. */
export const plain = (markup: string): string =>
  markup
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim()

/** The address of the next part of a list, if there is one. */
export const nextOf = (markup: string): string | undefined =>
  /href="([^"]+)" rel="next"/.exec(markup)?.[1]?.replaceAll("&amp;", "&")

/** The parts of a list, from this address to the end. */
export const partsOf = Effect.fnUntraced(function* <E, R>(
  first: string,
  ask: (path: string) => Effect.Effect<{ readonly text: string }, E, R>
) {
  const parts: Array<string> = []
  for (let path: string | undefined = first; path !== undefined;) {
    const { text }: { readonly text: string } = yield* ask(path)
    parts.push(text)
    path = nextOf(text)
  }
  return parts
})
