/** A resource with a field of every type, for the tests of decoding. */
import {
  boolean,
  cancel,
  date,
  id,
  integer,
  lastchangedate,
  list,
  money,
  number,
  qty,
  string,
  text,
  timestamp
} from "../../src/catalogue/Field.ts"
import { resource } from "../../src/catalogue/Resource.ts"

export const parts = resource({
  path: "parts",
  area: "shop",
  purpose: "Parts",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    integer("rank"),
    integer("priority", { typed: false }),
    money("price"),
    qty("weight"),
    number("share", { dp: 0 }),
    boolean("flag"),
    string("code", 20),
    text("memo"),
    string("kind", 5, { typed: false }),
    date("day"),
    timestamp("seen"),
    list("lines", [integer("number")]),
    cancel(),
    lastchangedate()
  ],
  modifiedSince: true
})
