import { decoded } from '../fields.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { seedanceCreation, seedanceTasks } from './create.ts'
import { writeRecord } from './record.ts'
import { arkDialect, invalidField, taskNotFound, wrongState } from './refusals.ts'

/** Ark's content generation tasks: Seedance's videos. */
export const arkVideoProtocol: Protocol = (vendor, root, world) => {
  const path = `${root}/contents/generations/tasks`
  const idOf = (call: Call): string => decoded(call.path.slice(path.length + 1))
  return [
    { method: 'POST', path, answer: (call) => createTask(call, world, seedanceCreation) },
    { method: 'GET', path, answer: (call) => answerList(call, world) },
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, idOf(call)) },
    { method: 'DELETE', path: `${path}/*`, answer: (call) => answerDelete(call, world, idOf(call)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, arkDialect, (refusals) => {
    const task = world.videos.of(seedanceTasks).poll(id)
    if (!task) throw taskNotFound(id)
    refusePoll(task, refusals)
    return Response.json(writeRecord(task))
  })
}

/** DELETE cancels a queued task and deletes one that has ended. It refuses a running or a cancelled task. */
function answerDelete(call: Call, world: World, id: string): Response {
  return answerFree(call, arkDialect, () => {
    const tasks = world.videos.of(seedanceTasks)
    const task = tasks.find(id)
    if (!task) throw taskNotFound(id)
    if (tasks.cancel(task)) return new Response(null)
    if (task.state === 'running' || task.state === 'cancelled') throw wrongState(id, task.state)
    tasks.forget(task)
    return new Response(null)
  })
}

const pageMax = 500
const pageSizeUsual = 10

/** The vendor offers no filter for the caller's own reference. */
function answerList(call: Call, world: World): Response {
  return answerFree(call, arkDialect, () => {
    const { searchParams: query } = new URL(call.request.url)
    const number = readPage(query, 'page_num', 1)
    const size = readPage(query, 'page_size', pageSizeUsual)
    const ids = query.getAll('filter.task_ids')
    const wanted = (name: string, value: string): boolean => (query.get(`filter.${name}`) || value) === value
    const found = world.videos
      .of(seedanceTasks)
      .list()
      .filter(
        (task) =>
          (ids.length === 0 || ids.includes(task.id)) &&
          wanted('status', task.oddWord ?? task.state) &&
          wanted('model', task.model.model) &&
          wanted('service_tier', task.ask.settings.serviceTier),
      )
    const items = found.slice((number - 1) * size, number * size).map(writeRecord)
    return Response.json({ items, total: found.length })
  })
}

function readPage(query: URLSearchParams, name: string, usual: number): number {
  const text = query.get(name)
  if (!text) return usual
  const page = Number(text)
  if (Number.isInteger(page) && page >= 1 && page <= pageMax) return page
  throw invalidField(name, `it must be an integer between 1 and ${pageMax}`)
}
