import { jsonOf, until } from '../testing.ts'
import { openVideos } from '../video/testing.ts'

export type Record = {
  request_id: string
  output: {
    task_id: string
    task_status: string
    submit_time?: string
    scheduled_time?: string
    end_time?: string
    video_url?: string
    orig_prompt?: string
    actual_prompt?: string
    code?: string
    message?: string
  }
  usage?: object
}

const asyncHeaders = { 'x-dashscope-async': 'enable' }
const ended = new Set(['SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN'])

/** The few calls that the tests make to DashScope's tasks. */
export function openWan() {
  const videos = openVideos()
  const root = `${videos.sandbox.baseUrl('dashscope')}/api/v1`
  const post = (body: unknown, ref?: string, headers: object = asyncHeaders): Promise<Response> =>
    videos.send(`${root}/services/aigc/video-generation/video-synthesis`, body, {
      headers: { ...headers },
      ...(ref !== undefined && { ref }),
    })

  async function create(model: string, input: object, parameters: object = {}, ref?: string): Promise<string> {
    const { output } = await jsonOf<Record>(post({ model, input, parameters }, ref))
    return output.task_id
  }
  const get = (id: string): Promise<Record> => jsonOf(videos.send(`${root}/tasks/${id}`))
  return {
    ...videos,
    root,
    post,
    create,
    get,
    end: (id: string): Promise<Record> =>
      until(async () => {
        const record = await get(id)
        return ended.has(record.output.task_status) ? record : undefined
      }),
    cancel: (id: string): Promise<Response> => videos.send(`${root}/tasks/${id}/cancel`, ''),
  }
}
