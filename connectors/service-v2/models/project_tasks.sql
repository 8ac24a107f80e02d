-- Which tasks does each project have, in which status, and which are past due?
--
-- One row for each project, status and user.
-- Counts: tasks in every status; the documents do not say which status means done, so past_due has finished tasks too:
-- choose the statuses of your install.
-- Leaves out: cancelled and deleted tasks. Tasks of a cancelled or missing project count (project_cancelled).
-- Projects have a code only. Hours are recorded on service orders, which name no project, and estimated hours on
-- recurring tasks and templates only: no progress in hours can be given.
-- Today is as_of(): the session's current date, or tributary.as_of where that is set.
-- Facts: SCOPE-19, RES-15, STATE-12, TEAMPROJECTRECURRINGTASKS-04, TEAMPROJECTRECURRINGTASKS-10,
-- TEAMPROJECTTEMPLATEITEMS-10.
--
-- Day: none
-- Columns:
--   company_id bigint: the company of the token that read it
--   project_id bigint: id of the project; empty for tasks without one
--   project text: code of the project
--   project_cancelled boolean: whether the project is cancelled, or not there at all
--   status_id bigint: id of the status
--   status text: name of the status
--   user_id bigint: id of the user that the tasks are assigned to
--   login text: login name of the user
--   tasks bigint: number of tasks
--   tasks_undated bigint: tasks without a due date
--   tasks_past_due bigint: tasks whose due date is before today
--   earliest_due date: earliest due date
--   next_due date: earliest due date from today on
select
  t._company_id as company_id,
  t.teamprojectid as project_id,
  max(t.teamproject) as project,
  bool_and(p.id is null or coalesce(p.cancel, false)) as project_cancelled,
  t.statusid as status_id,
  max(t.status) as status,
  t.assignuserid as user_id,
  max(t.assignuser) as login,
  count(*) as tasks,
  count(*) filter (where t.duedate is null) as tasks_undated,
  count(*) filter (where t.duedate < {{as_of}}) as tasks_past_due,
  min(t.duedate) as earliest_due,
  min(t.duedate) filter (where t.duedate >= {{as_of}}) as next_due
from {{teamprojecttasks}} t
left join {{teamprojects}} p on p._company_id = t._company_id and p.id = t.teamprojectid and p._deleted_at is null
where t._deleted_at is null and not coalesce(t.cancel, false)
group by t._company_id, t.teamprojectid, t.statusid, t.assignuserid
