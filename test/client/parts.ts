/** A resource with a field of every type, for tests of decoding. */
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
} from "../../connectors/service-v2/catalogue/fields.ts"
import { resource } from "../../connectors/service-v2/catalogue/resource.ts"

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
