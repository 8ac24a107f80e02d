/** The texts in PDF files. */
import { inflateSync } from "node:zlib"

/** The text of each page, from the streams of the file. */
export const pagesOf = (pdf: Uint8Array): ReadonlyArray<string> => {
  const bytes = Buffer.from(pdf)
  const pages: Array<string> = []
  for (
    let at = bytes.indexOf("stream\n");
    at >= 0;
    at = bytes.indexOf("stream\n", bytes.indexOf("endstream", at) + 9)
  ) {
    const inflated = inflateSync(bytes.subarray(at + 7, bytes.indexOf("endstream", at))).toString("latin1")
    const text = [...inflated.matchAll(/\[(.*?)\] TJ/g)]
      .map(([, parts]) =>
        [...parts!.matchAll(/<([0-9a-f]+)>/g)].map(([, hex]) => Buffer.from(hex!, "hex").toString("latin1")).join("")
      )
      .join("\n")
    if (text !== "") pages.push(text)
  }
  return pages
}
