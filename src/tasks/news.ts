import type { JsonObject } from '../base/json.ts'
import { withoutKey, withoutSecrets } from '../base/scrub.ts'
import type { VideoNews } from '../capabilities/video.ts'
import type { AdoptedTask } from './adopt.ts'
import { ask, contextOf, type TaskRoute, isAboutUs, judgeQuestion } from './calls.ts'
import type { TaskParts } from './parts.ts'

/** Polls the vendor for the news of a task; undefined where it gave none. */
export async function askVendor(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
): Promise<VideoNews | undefined> {
  const { adapter } = taskRoute
  const { upstreamId } = task
  const call = adapter.poll(upstreamId, contextOf(parts, taskRoute, task), task.facts)
  const answered = await ask(parts, taskRoute, call, task)
  const fields = { task: task.id, channel: task.channel, upstream: upstreamId }
  if (answered.kind === 'failed') {
    parts.log.warn({ ...fields, kind: answered.error.kind }, 'a task could not be polled')
    return undefined
  }
  if (isAboutUs(answered)) {
    const { kind } = judgeQuestion(parts, taskRoute, answered)
    parts.log.warn({ ...fields, status: answered.status, kind }, 'a poll was refused')
    return undefined
  }
  try {
    const news = adapter.readTask(answered, task.facts)
    if (news.state === 'unknown-word') {
      const word = news.word.slice(0, wordCharactersMax)
      parts.unknownStates.add(task.channel, word)
      parts.log.error({ ...fields, word }, 'a vendor reported an unknown state')
    }
    return discreet(withAddress(news, taskRoute), taskRoute)
  } catch (thrown) {
    parts.log.warn({ ...fields, status: answered.status, cause: String(thrown) }, 'a poll could not be read')
    return undefined
  }
}

const wordCharactersMax = 64

/** An adapter does not know which channel a record came from: a path that it gives is below the channel's base URL. */
function withAddress(news: VideoNews, { channel }: TaskRoute): VideoNews {
  const { result } = news
  if (result?.needsKey !== true || !result.videoUrl.startsWith('/')) return news
  return { ...news, result: { ...result, videoUrl: `${channel.baseUrl}${result.videoUrl}` } }
}

/** The customer may see the vendor's record, but not our credential in it or the vendor's address in its message. */
function discreet(news: VideoNews, { channel, credential }: TaskRoute): VideoNews {
  const { record, error } = news
  const secrets = { baseUrl: channel.baseUrl, credential }
  return {
    ...news,
    record: recordWithoutKey(record, credential),
    ...(error !== undefined && { error: { code: error.code, message: withoutSecrets(error.message, secrets) } }),
  }
}

function recordWithoutKey(record: JsonObject, credential: string): JsonObject {
  const text = JSON.stringify(record)
  const shown = withoutKey(text, credential)
  return shown === text ? record : (JSON.parse(shown) as JsonObject)
}
