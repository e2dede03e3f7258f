import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { pixverseCreation, pixverseTasks } from './create.ts'
import { errorForCode } from './errors.ts'
import { pixverseManners } from './manners.ts'
import { writeRecord } from './record.ts'

/** PixVerse's videos, from a text alone: nobody here uploads pictures to it. */
export const pixverseProtocol: Protocol = (vendor, root, world) => {
  const path = `${root}/result`
  const idOf = (call: Call): string => decodeURIComponent(call.path.slice(path.length + 1))
  return [
    { method: 'POST', path: `${root}/text/generate`, answer: (call) => createTask(call, world, pixverseCreation) },
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, idOf(call)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, pixverseManners, (refusals) => {
    const task = world.videos.of(pixverseTasks).poll(id)
    if (!task) throw errorForCode('500008')
    refusePoll(task, refusals)
    return Response.json(writeRecord(task))
  })
}
