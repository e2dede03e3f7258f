import { decoded } from '../fields.ts'
import type { Call, Protocol, Route, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute, videoLink } from '../video/results.ts'
import type { VideoState, VideoTask } from '../video/tasks.ts'
import { type Kind, runwayCreation, runwayTasks } from './create.ts'
import { errorForStatus } from './errors.ts'
import { runwayDialect } from './dialect.ts'

const kinds: readonly Kind[] = ['text_to_video', 'image_to_video', 'video_to_video']

export const runwayProtocol: Protocol = (vendor, root, world) => {
  const path = `${root}/tasks`
  const idOf = (call: Call): string => decoded(call.path.slice(path.length + 1))
  const creations = kinds.map((kind): Route => {
    const creation = runwayCreation(kind)
    return { method: 'POST', path: `${root}/${kind}`, answer: (call) => createTask(call, world, creation) }
  })
  return [
    ...creations,
    { method: 'GET', path: `${path}/*`, answer: (call) => answerTask(call, world, idOf(call)) },
    { method: 'DELETE', path: `${path}/*`, answer: (call) => answerDelete(call, world, idOf(call)) },
    resultRoute(vendor, () => world.videos.clock.now()),
  ]
}

function answerTask(call: Call, world: World, id: string): Response {
  return answerFree(call, runwayDialect, (refusals) => {
    const task = world.videos.of(runwayTasks).poll(id)
    if (!task) throw errorForStatus(404)
    refusePoll(task, refusals)
    return Response.json(writeTask(task))
  })
}

/** DELETE stops a task that has not ended and deletes one that has. Neither is found again. */
function answerDelete(call: Call, world: World, id: string): Response {
  return answerFree(call, runwayDialect, () => {
    const tasks = world.videos.of(runwayTasks)
    const task = tasks.find(id)
    if (!task) throw errorForStatus(404)
    tasks.stop(task)
    tasks.forget(task)
    return new Response(null, { status: 204 })
  })
}

const words = {
  queued: 'PENDING',
  running: 'RUNNING',
  succeeded: 'SUCCEEDED',
  failed: 'FAILED',
  cancelled: 'CANCELLED',
  expired: 'FAILED',
} as const satisfies Record<VideoState, string>

/** A record does not repeat the request and reports no usage. */
function writeTask(task: VideoTask<Kind>): object {
  const { id, state, oddWord, createdAt, failure, steering } = task
  return {
    id,
    status: oddWord ?? words[state],
    createdAt: new Date(createdAt).toISOString(),
    ...(state === 'running' && { progress: 0.5 }),
    ...(state === 'failed' && { failure: failure?.message ?? '', failureCode: failure?.code ?? '' }),
    ...(state === 'succeeded' && { output: steering.has('no-video') ? [] : [videoLink(task)] }),
  }
}
