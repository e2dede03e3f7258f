import { decoded } from '../fields.ts'
import type { Call, Protocol, Route, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { kinds } from './check.ts'
import { viduCreation, viduTasks } from './create.ts'
import { errorForCode } from './errors.ts'
import { viduDialect } from './dialect.ts'
import { writeTask } from './record.ts'

const tail = '/creations'

/** Vidu's videos. Each kind has its own path; the tasks of all kinds share one. */
export const viduProtocol: Protocol = (vendor, root, world) => {
  const path = `${root}/tasks`
  const creations = kinds.map((kind): Route => {
    const creation = viduCreation(kind)
    return { method: 'POST', path: `${root}/${kind}`, answer: (call) => createTask(call, world, creation) }
  })
  return [
    ...creations,
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, call.path.slice(path.length + 1)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

function answerTask(call: Call, world: World, name: string): Response {
  return answerFree(call, viduDialect, (refusals) => {
    const id = name.endsWith(tail) ? decoded(name.slice(0, -tail.length)) : ''
    const task = world.videos.of(viduTasks).poll(id)
    if (!task) throw errorForCode('TaskNotFound')
    refusePoll(task, refusals)
    return Response.json(writeTask(task))
  })
}
