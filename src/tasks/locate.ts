import type { VideoNews } from '../capabilities/video.ts'
import type { Task } from '../store/tasks.ts'
import { ask, contextOf, type TaskRoute, isAboutUs, judgeQuestion } from './calls.ts'
import { failedTries, keepTriesMax } from './keep.ts'
import type { TaskParts } from './parts.ts'

/**
 * The news of a finished video with its URL: some vendors' records only name a file, whose URL takes a further call.
 * Undefined where that call failed this time. After too many failures the news is given without a URL, and the task
 * fails.
 */
export async function located(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: Task,
  news: VideoNews,
): Promise<VideoNews | undefined> {
  const { locate } = taskRoute.adapter
  const call = news.state === 'succeeded' ? locate?.call(news.record, contextOf(parts, taskRoute, task)) : undefined
  if (locate === undefined || call === undefined) return news
  try {
    const answered = await ask(parts, taskRoute, call, task)
    if (answered.kind === 'failed') throw answered.error
    if (isAboutUs(answered)) throw judgeQuestion(parts, taskRoute, answered)
    const result = locate.read(answered, task.facts)
    return result === undefined ? news : { ...news, result }
  } catch (thrown) {
    const cause = String(thrown)
    parts.log.warn({ task: task.id, channel: task.channel, cause }, 'a vendor did not say where its video is')
    return failedTries(task) + 1 < keepTriesMax ? undefined : news
  }
}
