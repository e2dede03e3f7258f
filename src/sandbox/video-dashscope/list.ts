import { invalidParameter } from '../dashscope/errors.ts'
import type { VideoTask } from '../video/tasks.ts'
import type { WanAsk } from './create.ts'
import { readTime, statusOf } from './record.ts'

const windowMsMax = 24 * 60 * 60 * 1_000
const pageSizeUsual = 10
const pageSizeMax = 100

/** One page of the tasks of a day, newest first. The vendor offers no filter for the caller's own reference. */
export function listTasks(tasks: readonly VideoTask<WanAsk>[], query: URLSearchParams, now: number): object {
  const [from, to] = readWindow(query, now)
  const pageNumber = readPage(query, 'page_no', 1, Number.MAX_SAFE_INTEGER)
  const pageSize = readPage(query, 'page_size', pageSizeUsual, pageSizeMax)
  const wanted = (name: string, value: string): boolean => (query.get(name) || value) === value
  const found = tasks.filter(
    (task) =>
      task.createdAt >= from &&
      task.createdAt <= to &&
      wanted('task_id', task.id) &&
      wanted('model_name', task.model.model) &&
      wanted('status', statusOf(task)),
  )
  return {
    data: found.slice((pageNumber - 1) * pageSize, pageNumber * pageSize).map(writeRow),
    total: found.length,
    total_page: Math.ceil(found.length / pageSize),
    page_no: pageNumber,
    page_size: pageSize,
  }
}

function writeRow(task: VideoTask<WanAsk>): object {
  const { id, model, createdAt, startedAt, endedAt, ask } = task
  return {
    task_id: id,
    status: statusOf(task),
    model_name: model.model,
    gmt_create: createdAt,
    ...(startedAt !== undefined && { start_time: startedAt }),
    ...(endedAt !== undefined && { end_time: endedAt }),
    request_id: ask.requestId,
    region: 'cn-beijing',
  }
}

/** The last day, or a day from or until the one time that is given. */
function readWindow(query: URLSearchParams, now: number): readonly [from: number, to: number] {
  const [start, end] = ['start_time', 'end_time'].map((name) => {
    const text = query.get(name)
    if (!text) return undefined
    const at = readTime(text)
    if (at === undefined) throw invalidParameter(`${name} should be in the form YYYYMMDDhhmmss.`)
    return at
  })
  // A time names the beginning of a second and includes all of it.
  const to = end === undefined ? (start === undefined ? now : start + windowMsMax) : end + 999
  const from = start ?? to - windowMsMax
  if (to - from > windowMsMax + 999) throw invalidParameter('The time range should not exceed 24 hours.')
  return [from, to]
}

function readPage(query: URLSearchParams, name: string, usual: number, most: number): number {
  const text = query.get(name)
  if (!text) return usual
  const page = Number(text)
  if (!Number.isInteger(page) || page < 1 || page > most) throw invalidParameter(`${name} is out of range.`)
  return page
}
