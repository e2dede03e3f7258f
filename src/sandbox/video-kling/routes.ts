import { decoded } from '../fields.ts'
import type { Call, Protocol, Route, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { type Kind, klingCreation, klingTasks } from './create.ts'
import { errorForCode, invalidField } from './errors.ts'
import { klingDialect, writeKling } from './dialect.ts'
import { writeData } from './record.ts'

/** Kling's videos. Each kind has its own path, and its tasks are found only there. */
export const klingProtocol: Protocol = (vendor, root, world) => [
  ...routesOf('text2video', root, world),
  ...routesOf('image2video', root, world),
  resultRoute(vendor, () => world.videos.clock.now()),
]

function routesOf(kind: Kind, root: string, world: World): Route[] {
  const path = `${root}/${kind}`
  const creation = klingCreation(kind)
  const idOf = (call: Call): string => decoded(call.path.slice(path.length + 1))
  return [
    { method: 'POST', path, answer: (call) => createTask(call, world, creation) },
    { method: 'GET', path, answer: (call) => answerList(call, world, kind) },
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, kind, idOf(call)) },
  ]
}

/** Finds a task by its own id or by the caller's id. */
function answerTask(call: Call, world: World, kind: Kind, name: string): Response {
  return answerFree(call, klingDialect, (refusals) => {
    const tasks = world.videos.of(klingTasks)
    // Most tasks have no external id, which a path without any name must not be taken for.
    const byName = name === '' ? undefined : tasks.list().find(({ ask }) => ask.externalId === name)
    const task = tasks.poll(byName?.id ?? name)
    if (task?.ask.kind !== kind) throw errorForCode('1203')
    refusePoll(task, refusals)
    return answer(call, writeData(task))
  })
}

const pageMax = 1_000
const pageSizeMax = 500
const pageSizeUsual = 30

function answerList(call: Call, world: World, kind: Kind): Response {
  return answerFree(call, klingDialect, () => {
    const { searchParams: query } = new URL(call.request.url)
    const number = readPage(query, 'pageNum', 1, pageMax)
    const size = readPage(query, 'pageSize', pageSizeUsual, pageSizeMax)
    const found = world.videos
      .of(klingTasks)
      .list()
      .filter(({ ask }) => ask.kind === kind)
    return answer(call, found.slice((number - 1) * size, number * size).map(writeData))
  })
}

function answer(call: Call, data: unknown): Response {
  return new Response(writeKling(call, data), { headers: { 'content-type': 'application/json' } })
}

function readPage(query: URLSearchParams, name: string, usual: number, most: number): number {
  const page = Number(query.get(name) || usual)
  if (Number.isInteger(page) && page >= 1 && page <= most) return page
  throw invalidField(`${name} must be in [1, ${most}]`)
}
