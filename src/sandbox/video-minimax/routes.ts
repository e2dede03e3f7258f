import type { Call, Protocol, World } from '../protocol.ts'
import { answerFree, createTask, refusePoll } from '../video/creation.ts'
import { resultRoute } from '../video/results.ts'
import { minimaxCreation, minimaxTasks } from './create.ts'
import { invalid } from './errors.ts'
import { minimaxDialect } from './dialect.ts'
import { taskIdOf, writeFile, writeRecord } from './record.ts'

/** MiniMax's videos: a task by its id, and its result as a file, which holds the download link. */
export const minimaxVideoProtocol: Protocol = (vendor, root, world) => [
  { method: 'POST', path: `${root}/video_generation`, answer: (call) => createTask(call, world, minimaxCreation) },
  { method: 'GET', path: `${root}/query/video_generation`, answer: (call) => answerTask(call, world) },
  { method: 'GET', path: `${root}/files/retrieve`, answer: (call) => answerFile(call, world) },
  resultRoute(vendor, () => world.videos.clock.now()),
]

function answerTask(call: Call, world: World): Response {
  return answerFree(call, minimaxDialect, (refusals) => {
    const task = world.videos.of(minimaxTasks).poll(readQuery(call, 'task_id'))
    if (!task) throw invalid('task_id')
    refusePoll(task, refusals)
    return Response.json(writeRecord(task))
  })
}

const refusedFileCalls = 2

function answerFile(call: Call, world: World): Response {
  return answerFree(call, minimaxDialect, (refusals) => {
    const task = world.videos.of(minimaxTasks).find(taskIdOf(readQuery(call, 'file_id')))
    if (task?.state !== 'succeeded') throw invalid('file_id')
    const { file } = task.ask
    file.calls += 1
    const status = task.steering.number('file-status')
    if (status !== undefined && file.calls <= refusedFileCalls) throw refusals.forStatus(status)
    return Response.json(writeFile(task))
  })
}

function readQuery({ request }: Call, name: string): string {
  return new URL(request.url).searchParams.get(name) ?? ''
}
