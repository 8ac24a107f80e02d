/** Names and words of the demo data. */

export const companyNames: ReadonlyArray<string> = [
  "Abbott Hardware",
  "Alder Creek Builders",
  "Anvil Fabrication",
  "Baxter & Sons",
  "Bluewater Marine",
  "Briar Hill School",
  "Cedar Lane Clinic",
  "Chapman Interiors",
  "Copper State Electric",
  "Delgado Plumbing",
  "Dunmore Hotel",
  "Eastgate Property Services",
  "Elm Street Dental",
  "Falcon Logistics",
  "Fernwood Nurseries",
  "Galloway Roofing",
  "Granite Peak Gym",
  "Harbor Light Café",
  "Hollis Machine Works",
  "Ironwood Furniture",
  "Jasper Vineyards",
  "Kestrel Aviation",
  "Kline Brothers Paving",
  "Larkspur Bakery",
  "Linden Park Council",
  "Mercer Glass",
  "Midtown Bicycle Co.",
  "Norwood Printing",
  "O'Brien Construction",
  "Oak & Iron Brewing",
  "Pacific Rim Imports",
  "Pinecrest Dairy",
  "Quarry Road Garage",
  "Redfield Packaging",
  "Riverside Veterinary",
  "Sable Security",
  "Stonebridge Academy",
  "Tamarack Lodge",
  "Union Street Market",
  "Whitmore Landscaping",
  "Yarrow Textiles",
  "Zenith Signs"
]

export const products: ReadonlyArray<string> = [
  "Hex bolt",
  "Anchor plate",
  "Work gloves",
  "LED panel",
  "Circuit breaker",
  "Copper pipe",
  "Ball valve",
  "Paint, interior",
  "Drill bit set",
  "Safety glasses",
  "Extension cord",
  "Wood screw",
  "Door hinge",
  "Cable tray",
  "Insulation roll",
  "Junction box",
  "Ladder",
  "Pressure gauge",
  "Sealant",
  "Wire, 12 gauge"
]

export const people: ReadonlyArray<string> = [
  "Dana Whitfield",
  "Luis Ortega",
  "Priya Raman",
  "Tom Becker",
  "Ada Lindqvist",
  "Grace Okafor"
]

export const cities: ReadonlyArray<readonly [city: string, state: string, zip: string]> = [
  ["Portland", "OR", "97201"],
  ["Tacoma", "WA", "98402"],
  ["Boise", "ID", "83702"],
  ["Reno", "NV", "89501"],
  ["Eugene", "OR", "97401"],
  ["Spokane", "WA", "99201"]
]

export const streets: ReadonlyArray<string> = ["Alder St", "Main St", "Harbor Rd", "5th Ave", "Mill Lane", "Quarry Rd"]
