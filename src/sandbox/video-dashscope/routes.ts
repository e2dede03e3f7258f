import { requestIdFor } from '../dashscope/errors.ts'
import { nativeDialect } from '../dashscope/native.ts'
import { decoded } from '../fields.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { CodedRefusal } from '../refusal.ts'
import { wanCreation, wanTasks } from './create.ts'
import { listTasks } from './list.ts'
import { writeRecord } from './record.ts'

/** DashScope's asynchronous tasks: creating, polling, listing and cancelling Wan's videos. */
export const dashscopeVideoProtocol: Protocol = (vendor, root, world) => {
  const idOf = ({ path }: Call): string => decoded(path.slice(`${root}/tasks/`.length))
  const list = (call: Call): Response => answerList(call, world)
  return [
    {
      method: 'POST',
      path: `${root}/services/aigc/video-generation/video-synthesis`,
      answer: (call) => createTask(call, world, wanCreation),
    },
    { method: 'GET', path: `${root}/tasks`, answer: list },
    { method: 'GET', path: `${root}/tasks/`, answer: list },
    { method: 'GET', path: `${root}/tasks/*`, answer: (call) => answerTask(call, world, idOf(call)) },
    { method: 'POST', path: `${root}/tasks/*`, answer: (call) => answerCancel(call, world, idOf(call)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

/** A task that never existed or has been forgotten is not an error: its state is UNKNOWN. */
function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, nativeDialect, (refusals) => {
    const task = world.videos.of(wanTasks).poll(id)
    if (task) refusePoll(task, refusals)
    const record = task ? writeRecord(task) : { output: { task_id: id, task_status: 'UNKNOWN' } }
    return write(call, record)
  })
}

function answerList(call: Call, world: World): Response {
  return answerFree(call, nativeDialect, () => {
    const { searchParams } = new URL(call.request.url)
    const tasks = world.videos.of(wanTasks).list()
    return write(call, listTasks(tasks, searchParams, world.videos.clock.now()))
  })
}

function answerCancel(call: Call, world: World, tail: string): Response {
  return answerFree(call, nativeDialect, () => {
    const [, id] = /^(.+)\/cancel$/.exec(tail) ?? []
    if (id === undefined) throw new CodedRefusal(404, 'InvalidURL', 'url error, please check url!')
    const tasks = world.videos.of(wanTasks)
    const task = tasks.find(id)
    if (task && tasks.cancel(task)) return write(call, {})
    const message = 'Failed to cancel the task, please confirm if the task is in PENDING status.'
    throw new CodedRefusal(400, 'UnsupportedOperation', message)
  })
}

/** The request id is both in the body and in a header. */
function write({ path, text }: Call, body: object): Response {
  const requestId = requestIdFor(`${path} ${text}`)
  return Response.json({ ...body, request_id: requestId }, { headers: { 'x-request-id': requestId } })
}
