/** The address of a change endpoint: what is stored is what is requested. */
import { assert, it } from "@effect/vitest"
import { problemOfUrl } from "../../src/delivery/Endpoint.ts"

it("the address of an endpoint has no line break, space or other control character, which the parser of addresses leaves out", () => {
  for (const text of [
    "https://a.example/\r\nX-Injected: 1",
    "https://a.exa\tmple/",
    "https://a.example/\n",
    " https://a.example"
  ]) {
    assert.isTrue(URL.canParse(text))
    assert.match(problemOfUrl(text, false)!, /no spaces, line breaks/)
  }
  assert.isNull(problemOfUrl("https://a.example/in%0Atext?b=c", false))
})
