import type { ContentBlock } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { pause } from '../../base/pause.ts'
import { taskStates, type TaskState } from '../../capabilities/video.ts'
import { isUnavailable } from '../../store/faults.ts'
import { findTask } from '../../store/tasks.ts'
import { isOver, shownState } from '../../tasks/state.ts'
import type { ToolContext } from '../tool-context.ts'
import { fileLink, modelField, reading, spending, tool, type Shown } from '../tool.ts'

const create = 'POST /v1/videos/generations'
const list = 'GET /v1/videos/generations'
const retrieve = 'GET /v1/videos/generations/{id}'
const cancel = 'DELETE /v1/videos/generations/{id}'

const record = z.looseObject({
  id: z.string(),
  upstream_id: z.string().optional().meta({ description: 'The vendor’s own id, once it is known.' }),
  model: z.string(),
  status: z.string().meta({ description: '`submitted`, `running`, `succeeded`, `failed` or `cancelled`.' }),
  created_at: z.int().optional(),
  content: z.looseObject({}).nullish().meta({ description: 'With `video_url` once it has succeeded.' }),
  error: z.looseObject({}).nullish(),
})
const id = z.string().min(1).meta({ description: 'The id that `generate_video` gave, or its `upstream_id`.' })

export const generateVideo = tool({
  name: 'generate_video',
  title: 'Make a video',
  description: [
    'Starts a video, which takes minutes, and returns its task at once; poll it with `get_video`.',
    'With `wait` the call lasts until the video is done and reports progress. Costs money by seconds and resolution,',
    'once it has succeeded.',
  ].join(' '),
  annotations: spending,
  input: z.strictObject({
    model: modelField('video', 'wan2.6-t2v'),
    prompt: z
      .string()
      .optional()
      .meta({ description: 'What it shows.', examples: ['Waves against a lighthouse.'] }),
    duration: z
      .int()
      .optional()
      .meta({ description: 'Seconds.', examples: [5] }),
    resolution: z.string().optional().meta({ description: 'Such as 720p.' }),
    aspect_ratio: z.string().optional().meta({ description: 'Such as 16:9.' }),
    input: z.looseObject({}).optional().meta({
      description:
        'Images, videos and audio to start from, in the model’s own fields, such as `img_url`, `media` or `reference_urls` (see turnpike://api/createVideo and turnpike://models/{id}).',
    }),
    parameters: z.looseObject({}).optional().meta({ description: 'Further parameters of the model.' }),
    webhook_url: z.string().optional().meta({ description: 'A URL that is called once when the task ends.' }),
    wait: z.boolean().default(false).meta({ description: 'Whether to wait until the video is done.' }),
    timeout: z
      .int()
      .min(1)
      .max(1800)
      .default(300)
      .meta({ description: 'The maximum number of seconds to wait; the task continues after that.' }),
  }),
  output: record,
  routes: [create, retrieve],
  async call({ prompt, input, wait, timeout, ...fields }, context) {
    const scene = { ...input, ...(prompt !== undefined && { prompt }) }
    const response = await context.ask(create, { json: { ...fields, input: scene } })
    const task = (await response.json()) as Task
    if (!wait || isOver(task.status)) return show(task)
    const status = await waitForEnd(context, task, timeout * 1000)
    // A client that has left needs no record.
    context.signal.throwIfAborted()
    // The video is ordered even if its record cannot be read. A client that got only that error would order it again.
    return show(await readTask(context, task.id).catch(() => ({ ...task, status })))
  },
})

export const getVideo = tool({
  name: 'get_video',
  title: 'Look at a video task',
  description: 'The status of a video and, once it has succeeded, a link that works for a limited time. Free.',
  annotations: reading,
  input: z.strictObject({ id }),
  output: record,
  routes: [retrieve],
  call: async ({ id: taskId }, context) => show(await readTask(context, taskId)),
})

export const listVideos = tool({
  name: 'list_videos',
  title: 'List video tasks',
  description: 'The account’s video tasks, newest first. Free.',
  annotations: reading,
  input: z.strictObject({
    status: z.enum(taskStates).optional(),
    model: z.string().optional(),
    limit: z.int().min(1).max(100).optional(),
    after: z.string().optional().meta({ description: 'The `next` of the previous page.' }),
  }),
  output: z.looseObject({ data: z.array(record) }),
  routes: [list],
  async call({ limit, ...asked }, context) {
    const response = await context.ask(list, { query: { ...asked, limit: limit?.toString() } })
    return { blocks: [], structured: (await response.json()) as Record<string, unknown> }
  },
})

export const cancelVideo = tool({
  name: 'cancel_video',
  title: 'Cancel a video task',
  description:
    'Stops a video that is not done yet, if its vendor can; it then costs nothing. A finished video, or one that cannot be stopped, stays as it is.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: z.strictObject({ id }),
  output: record,
  routes: [cancel],
  async call({ id: taskId }, context) {
    const response = await context.ask(cancel, { id: taskId })
    return show((await response.json()) as Task)
  },
})

type Task = {
  readonly id: string
  readonly status: TaskState
  readonly content?: { readonly video_url?: string | null }
}

async function readTask(context: ToolContext, taskId: string): Promise<Task> {
  return (await (await context.ask(retrieve, { id: taskId })).json()) as Task
}

function show(task: Task): Shown {
  const url = task.content?.video_url ?? undefined
  const blocks: ContentBlock[] = url === undefined ? [] : [fileLink(url, `${task.id}.mp4`, 'video/mp4')]
  return { blocks, structured: { ...task } }
}

const lookMs = 500
const tellMs = 5_000

/**
 * Reads the task's row until the task is over, the time is up, the client has left or the node is about to stop, and
 * reports progress. It does not use the path, so that waiting does not use up the key's requests.
 */
async function waitForEnd(context: ToolContext, { id: taskId, status }: Task, withinMs: number): Promise<TaskState> {
  const { clock, progress, store, principal } = context
  const left = AbortSignal.any([context.signal, context.hurried])
  const startedAt = clock.monotonic()
  let [said, toldAt] = ['', Number.NEGATIVE_INFINITY]
  let state = status
  while (!isOver(state) && !left.aborted) {
    const waitedMs = clock.monotonic() - startedAt
    if (waitedMs >= withinMs) return state
    if (state !== said || clock.monotonic() - toldAt >= tellMs) {
      progress.tell(`The video is ${state} (${Math.round(waitedMs / 1000)} s)`)
      said = state
      toldAt = clock.monotonic()
    }
    await pause(Math.min(lookMs, withinMs - waitedMs), left)
    if (left.aborted) return state
    const row = await findTask(store.db, { accountId: principal.accountId, id: taskId }).catch(unlessUnavailable)
    if (row === 'unknown') continue
    if (row === undefined || row.state === 'refused') return state
    state = shownState(row.state)
  }
  return state
}

/** A database that is briefly unavailable says nothing about the video, so the call goes on waiting. */
function unlessUnavailable(thrown: unknown): 'unknown' {
  if (isUnavailable(thrown)) return 'unknown'
  throw thrown
}
