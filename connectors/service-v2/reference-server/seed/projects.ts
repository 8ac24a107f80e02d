/** Demo data of projects and their children. */
import type { Business } from "./Business.ts"
import { microsPerDay, printDay } from "../time.ts"

const titles = ["Measure", "Order material", "Prepare site", "Install", "Inspect", "Hand over"]

export const projects = (business: Business, count: number): void => {
  const { context, clock } = business
  const begin = clock.now()
  const statuses = business.all("teamprojectstatuses")
  const tags = ["urgent", "outdoor"].map((name) => business.make("teamprojecttags", { name }))
  const template = business.make("teamprojecttemplates", { name: "Store refit" })
  const above = business.make("teamprojecttemplateitems", {
    teamprojecttemplateid: template.id,
    itemtype: 0,
    title: "Refit",
    sortorder: 1
  })
  for (const [index, title] of titles.entries()) {
    business.make("teamprojecttemplateitems", {
      teamprojecttemplateid: template.id,
      parentitemid: above.id,
      itemtype: 1,
      title,
      priority: 1,
      estimatedhours: `${2 + index}.5`,
      offsetdays: index * 3,
      durationdays: 3,
      sortorder: index + 2
    })
  }
  for (let number = 1; number <= count; number++) {
    const project = business.make("teamprojects", { code: `REFIT-${number}` })
    const milestone = business.make("teamprojectmilestones", { title: `Refit ${number} done` })
    business.make("teamprojectautomations", {
      teamprojectid: project.id,
      name: "Tell the office when a task is done",
      triggertype: 0,
      triggervalue: "Done",
      actiontype: 4,
      actionvalue: "office",
      enabled: true,
      sortorder: 1
    })
    business.make("teamprojectrecurringtasks", {
      teamprojectid: project.id,
      teamprojectmilestoneid: milestone.id,
      title: "Weekly walk-through",
      teamprojectstatusid: statuses[0]!.id,
      priority: 1,
      estimatedhours: "1",
      frequency: 1,
      dayofweek: number,
      enabled: true
    })
    for (const [index, title] of titles.entries()) {
      const duedate = printDay(begin + (number * 20 + index * 3) * microsPerDay)
      const task = business.make("teamprojecttasks", {
        teamprojectid: project.id,
        title: `${title}, refit ${number}`,
        statusid: statuses[0]!.id,
        assignuserid: context.userId,
        duedate
      })
      if (index % 2 === 0) {
        business.make("teamprojecttasktags", {
          teamprojecttaskid: task.id,
          teamprojecttagid: tags[index % 4 === 0 ? 0 : 1]!.id
        })
      }
      if (index === 0) {
        const reminderdate = duedate
        business.make("teamprojectreminders", { genuserid: context.userId, teamprojecttaskid: task.id, reminderdate })
      }
      const at = begin + (number * 20 + index * 3) * microsPerDay
      business.plan(at, () => business.change(task, { statusid: statuses[2]!.id }))
    }
  }
}
