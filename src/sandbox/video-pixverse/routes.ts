import { decoded } from '../fields.ts'
import type { Call, Protocol, Route, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { kinds, pixverseCreation, pixverseTasks } from './create.ts'
import { errorForCode } from './errors.ts'
import { pixverseDialect } from './dialect.ts'
import { writeRecord } from './record.ts'
import { answerUpload } from './upload.ts'

/** PixVerse's videos, and the uploads of their first and last images. */
export const pixverseProtocol: Protocol = (vendor, root, world) => {
  const path = `${root}/video/result`
  const idOf = (call: Call): string => decoded(call.path.slice(path.length + 1))
  return [
    { method: 'POST', path: `${root}/image/upload`, answer: answerUpload },
    ...kinds.map((kind): Route => {
      const creation = pixverseCreation(kind)
      const path = `${root}/video/${kind}/generate`
      return { method: 'POST', path, answer: (call) => createTask(call, world, creation) }
    }),
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, idOf(call)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, pixverseDialect, (refusals) => {
    const task = world.videos.of(pixverseTasks).poll(id)
    if (!task) throw errorForCode('500008')
    refusePoll(task, refusals)
    return Response.json(writeRecord(task))
  })
}
