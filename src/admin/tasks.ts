import { z } from 'zod'
import { exactText, pageFields, periodFields, readQuery } from '../reports/query.ts'
import { reportTask, reportTasks } from '../reports/tasks.ts'
import { storedTaskStates } from '../store/task-schema.ts'
import { taskById } from '../store/tasks.ts'
import { absent, type Call } from './call.ts'
import { scopeOf } from './filters.ts'
import type { AdminParts } from './routes.ts'

const tasksQuery = z.strictObject({
  ...pageFields,
  ...periodFields,
  account: exactText.exactOptional(),
  model: exactText.exactOptional(),
  state: z.enum(storedTaskStates).exactOptional(),
  in_doubt: z.enum(['true', 'false']).exactOptional(),
})

export function taskCalls({ store, mode }: Pick<AdminParts, 'store' | 'mode'>) {
  return {
    /** `GET /admin/tasks`: newest first. */
    list: async ({ visit }: Call) => {
      const { account, state, in_doubt: doubt, limit, after, ...rest } = readQuery(visit.request, tasksQuery)
      const filter = {
        ...rest,
        mode,
        scope: await scopeOf({ store, mode }, account),
        states: state && [state],
        inDoubt: doubt && doubt === 'true',
      }
      return reportTasks(store.db, filter, { limit, after })
    },

    /** `GET /admin/tasks/{id}` */
    read: async ({ id }: Call) => {
      const task = await taskById(store.db, { scope: 'every-account', id })
      if (task === undefined) throw absent('task')
      return reportTask(store.db, task)
    },
  }
}
