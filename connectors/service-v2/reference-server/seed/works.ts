/** Demo data of contacts, jobs and leases of customers. */
import type { Version } from "../store/Table.ts"
import type { Business } from "./Business.ts"
import { people, streets } from "./names.ts"

export const works = (business: Business, customers: ReadonlyArray<Version>): void => {
  for (const [index, customer] of customers.slice(0, 9).entries()) {
    const [firstname, lastname] = people[index % people.length]!.split(" ")
    const login = `${firstname!.toLowerCase()}${customer.id}`
    const email = `${login}@example.com`
    business.make("contactnames", { customerid: customer.id, firstname, lastname, email })
    if (index % 3 === 0) business.make("b2busers", { customerid: customer.id, login, email, enabled: true })
    if (index % 2 === 0) business.make("estquotes", { customerid: customer.id, total: `${450 + index * 75}.00` })
    if (index >= 3) continue
    const job = business.make("jobs", { name: `Refit ${index + 1}`, customerid: customer.id })
    business.make("jobsites", { jobid: job.id, address: `${20 + index} ${streets[index]!}` })
    for (let draw = 1; draw <= 2; draw++) business.make("jobdraws", { jobid: job.id, amount: `${draw * 2500}.00` })
  }
  const building = business.make("buildings", { name: "Warehouse annex" })
  for (let unit = 1; unit <= 3; unit++) {
    const { id } = business.make("propertyunits", { buildingid: building.id, unitnumber: `A${unit}` })
    if (unit === 3) continue
    const customerid = customers[unit]!.id
    business.make("leases", { propertyunitid: id, customerid, begindate: "2026-01-01", enddate: "2027-12-31" })
  }
}
