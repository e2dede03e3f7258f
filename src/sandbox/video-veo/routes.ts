import { decoded } from '../fields.ts'
import { GoogleError, jsonType, writeJson } from '../gemini/errors.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { veoCreation, veoDialect, veoTasks } from './create.ts'
import { redirectToFile, writeOperation } from './operation.ts'

/** Veo's files. Its operations are below Google's models, whose routes hand those calls on. */
export const veoProtocol: Protocol = (vendor, root, world) => [
  { method: 'GET', path: `${root}/files/*`, answer: (call) => answerFile(call, world, `${root}/files/`) },
  resultRoute(vendor, () => world.videos.clock.now()),
]

export function predictLongRunning(call: Call, world: World, model: string): Promise<Response> {
  const root = call.path.slice(0, call.path.indexOf('/models/'))
  return createTask(call, world, veoCreation(model, root))
}

/** The model and the id of an operation, if the end of the path names one. */
export function readOperation(tail: string): { readonly model: string; readonly id: string } | undefined {
  const [, model, id] = /^([^/]+)\/operations\/([^/]+)$/.exec(tail) ?? []
  return model === undefined || id === undefined ? undefined : { model, id }
}

type Operation = NonNullable<ReturnType<typeof readOperation>>

export function getOperation(call: Call, world: World, { model, id }: Operation): Response {
  return answerFree(call, veoDialect, (refusals) => {
    const task = world.videos.of(veoTasks).poll(id)
    if (!task || task.model.model !== model) {
      throw new GoogleError({ status: 404, message: 'Requested entity was not found.' })
    }
    refusePoll(task, refusals)
    return new Response(writeJson(writeOperation(task)), { headers: { 'content-type': jsonType } })
  })
}

function answerFile(call: Call, world: World, start: string): Response {
  return answerFree(call, veoDialect, () => {
    const [, id = ''] = /^(\w+)-\d:download$/.exec(decoded(call.path.slice(start.length))) ?? []
    const task = world.videos.of(veoTasks).find(id)
    if (task?.state === 'succeeded') return redirectToFile(task)
    const message = `You do not have permission to access the File ${id} or it may not exist.`
    throw new GoogleError({ status: 403, message })
  })
}
