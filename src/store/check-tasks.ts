import { sql } from 'kysely'
import type { Breach } from './check.ts'
import type { Tx } from './schema.ts'

/**
 * I7: a finished task has exactly one resolution, the one that its state implies, and one event if it has a webhook; an
 * unfinished task has neither. No hold is open for a task that does not exist.
 */
export async function wrongTasks(tx: Tx): Promise<Breach[]> {
  return [...(await wrongResolutions(tx)), ...(await strayHolds(tx)), ...(await wrongEvents(tx))]
}

async function wrongResolutions(tx: Tx): Promise<Breach[]> {
  const { rows } = await sql<{ id: string; state: string; resolution: string }>`
    select task.id, task.state, coalesce(hold.state, 'absent') as resolution
      from task left join hold on hold.id = task.hold_id and hold.account_id = task.account_id and hold.kind = 'task'
      where coalesce(hold.state, 'absent') <> case
        when task.state in ('creating', 'submitted', 'running') then 'open'
        when task.state = 'succeeded' then 'settled'
        else 'void' end`.execute(tx)
  return rows.map(({ id, state, resolution }) => ({
    rule: 'I7',
    subject: id,
    why: `${state}, and its hold is ${resolution}`,
  }))
}

async function strayHolds(tx: Tx): Promise<Breach[]> {
  const rows = await tx
    .selectFrom('hold')
    .select('id')
    .where('kind', '=', 'task')
    .where('state', '=', 'open')
    .where((eb) => eb.not(eb.exists(eb.selectFrom('task').select('task.id').whereRef('task.hold_id', '=', 'hold.id'))))
    .execute()
  return rows.map(({ id }) => ({ rule: 'I7', subject: id, why: 'an open hold for a task that does not exist' }))
}

async function wrongEvents(tx: Tx): Promise<Breach[]> {
  const { rows } = await sql<{ id: string; state: string; rows: number }>`
    select task.id, task.state, count(webhook_event.id) as rows
      from task left join webhook_event on webhook_event.task_id = task.id
      group by task.id, task.state, task.webhook_url
      having count(webhook_event.id) <> case
        when task.webhook_url is not null and task.state in ('succeeded', 'failed', 'cancelled') then 1
        else 0 end`.execute(tx)
  return rows.map(({ id, state, rows: events }) => ({
    rule: 'I7',
    subject: id,
    why: `${state}, with ${events} events`,
  }))
}
