import { z } from 'zod'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import { jsonReply, type Reply } from '../base/http/reply.ts'
import { zeroNano } from '../base/money.ts'
import { taskStates } from '../capabilities/video.ts'
import { bearerOf } from '../edge/credential.ts'
import { passOver } from '../edge/read-body.ts'
import type { Visit } from '../edge/route.ts'
import { queryOf } from '../edge/target.ts'
import { order } from '../flow/order.ts'
import { placeVideo, type VideoParts } from '../flow/video.ts'
import { checkPeriod, exactText, pageFields, pageOf, periodFields, readQuery, rowsFor } from '../reports/query.ts'
import { storeError } from '../store/faults.ts'
import { listTasks } from '../store/task-lists.ts'
import { findTask, type Task } from '../store/tasks.ts'
import { showTask } from '../tasks/show.ts'
import { listedStates, statesShownAs } from '../tasks/state.ts'
import { serveKeyed } from './keyed.ts'
import { readJson, receive, respondWhole, sayCost, type ServeParts } from './serve.ts'

export type VideoRouteParts = ServeParts & VideoParts

/** `POST /v1/videos/generations` */
export function serveVideoOrder(parts: VideoRouteParts) {
  return async (visit: Visit): Promise<Reply> => {
    const { request } = visit
    const query = queryOf(request)
    const received = receive(visit, parts, bearerOf(request), readJson)
    const answer = await order(parts.line, received, (ordered, remembered) =>
      placeVideo(parts, ordered, (name) => query.get(name), remembered),
    ).catch((thrown: unknown) => {
      // After a final failure the task may exist all the same, so it is not said to be free.
      if (asGatewayError(thrown).details.shouldRetry !== false) sayCost(visit, zeroNano)
      throw thrown
    })
    // Of a task that was only accepted, the cost is not known yet.
    if (answer.status !== 202) sayCost(visit, answer.cost)
    return respondWhole(answer, visit)
  }
}

/** Another account's task, an unknown id and a malformed one are answered alike. */
async function ownTask({ store }: VideoRouteParts, accountId: string, id: string): Promise<Task> {
  const task = await findTask(store.db, { accountId, id })
  if (task === undefined) {
    throw new GatewayError('not-found', 'There is no such video task.', { code: 'task_not_found' })
  }
  return task
}

/** `GET /v1/videos/generations/{id}`: by our id, or by the vendor's. */
export function serveVideo(parts: VideoRouteParts) {
  return serveKeyed(parts.line, bearerOf, async ({ id }, { accountId }) =>
    showTask(await ownTask(parts, accountId, id), parts.clock.now()),
  )
}

/** `DELETE /v1/videos/generations/{id}` */
export function serveVideoCancel(parts: VideoRouteParts) {
  return serveKeyed(parts.line, bearerOf, async ({ id }, { accountId }) => {
    const task = await ownTask(parts, accountId, id)
    return showTask(await parts.tasks.cancel(task), parts.clock.now())
  })
}

const listQuery = z.strictObject({
  ...pageFields,
  ...periodFields,
  model: exactText.exactOptional(),
  status: z.enum(taskStates).exactOptional(),
})

/** `GET /v1/videos/generations`: the account's own tasks, newest first. */
export function serveVideoList(parts: VideoRouteParts) {
  const { store, clock } = parts
  return serveKeyed(parts.line, bearerOf, async ({ request }, { accountId }) => {
    const { limit, after, status, ...filter } = readQuery(request, listQuery)
    checkPeriod(filter)
    const asked = await rowsFor({ limit, after }, 'video task', (id) => findTask(store.db, { accountId, id }))
    const states = status === undefined ? listedStates : statesShownAs(status)
    const rows = await listTasks(store.db, { scope: { accountId }, states, ...filter }, asked)
    return {
      object: 'list',
      ...pageOf(
        rows,
        limit,
        (task) => showTask(task, clock.now()),
        ({ id }) => id,
      ),
    }
  })
}

/**
 * `POST /callbacks/video/{id}`: a vendor says that there is news of a task. Nothing else in the call is believed: its
 * body is skipped, and the task is looked up at the vendor. A token that we did not make is answered like an unknown
 * path.
 */
export function serveVideoCallback({ tasks }: Pick<VideoParts, 'tasks'>) {
  return async ({ id, request }: Visit): Promise<Reply> => {
    const heard = await tasks.hint(id).catch((thrown: unknown) => {
      throw storeError(thrown)
    })
    if (heard === 'unknown') throw new GatewayError('not-found', 'Unknown path.')
    await passOver(request)
    return jsonReply({})
  }
}
