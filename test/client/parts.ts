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
import { shopResource } from "../support/tiny.ts"

export const parts = shopResource(
  "parts",
  "L C B R U D",
  [
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
  { modifiedSince: true }
)
