import { z } from 'zod'
import { taskStates } from '../../capabilities/video.ts'
import { roleNames } from '../../wire/native/video-scene.ts'
import { videoRequest } from '../../wire/native/video-schema.ts'
import type { OperationDocs } from './operations.ts'

const text = (description: string) => z.string().meta({ description })
const unixTime = (description: string) => z.int().meta({ description: `${description} Unix seconds.` })

// Each field is read by the models that have it; null means absent.
const input = z.looseObject({
  prompt: text('What it shows.').nullish(),
  media: z
    .array(
      z.looseObject({
        type: z
          .literal(Object.keys(roleNames))
          .meta({ description: 'The role of the medium; the roles differ by model.' }),
        url: text('A public http(s) URL; for an image also a `data:` URL.'),
      }),
    )
    .nullish()
    .meta({ description: 'Images, videos and audio: Wan 2.7 and later, and other families.' }),
  img_url: text('The first frame: i2v of Wan 2.5 and 2.6; a shorthand on other families.').nullish(),
  audio_url: text('An audio track: Wan 2.5 and 2.6, and t2v of 2.7.').nullish(),
  reference_urls: z.array(z.string()).nullish().meta({ description: 'Reference images and videos: r2v of Wan 2.6.' }),
})

const parameters = z.looseObject({
  resolution: text('The same as the top-level field; upper case is accepted.').nullish(),
  size: text('Width and height instead of `resolution`, such as `1280*720`: Wan, Sora.').nullish(),
  duration: z
    .union([z.int(), z.string()])
    .nullish()
    .meta({ description: 'The same as the top-level field; a string where the vendor uses one.' }),
  audio: z.boolean().nullish().meta({ description: 'Whether the video has audio, on models that offer the choice.' }),
  shot_type: text('`single`: Wan 2.5, 2.6 and 3.0; `multi`: Wan 2.6 and 3.0.').nullish(),
  prompt_extend: z.boolean().nullish().meta({ description: 'Whether the vendor may enrich the prompt: Wan, Hailuo.' }),
  watermark: z.boolean().nullish().meta({ description: 'Whether the vendor adds a watermark, where it can.' }),
  seed: z
    .int()
    .nullish()
    .meta({ description: 'The same request and seed give a similar video, on models that take a seed.' }),
})

/** Described here but checked later: the fields of `input` and `parameters`, by model, and the range of `timeout`. */
const shape = {
  ...videoRequest.shape,
  input: input.nullish(),
  parameters: parameters.nullish(),
  timeout: z.int().min(1).max(300).nullish(),
}

const notes = {
  model: 'A model id from `GET /v1/models` with the capability `video`.',
  duration:
    "The length of the video in seconds, which billing follows. Default 5, or the model's own default if it does not offer 5.",
  resolution:
    "`480p`, `720p` or `1080p`, depending on the model; billing follows it. Default `720p`, or the model's own default " +
    'if it lacks that.',
  aspect_ratio: 'Default `16:9`, or the aspect ratio of the first frame on models that follow it.',
  input: "A `prompt`, and images, videos or audio in the model's own fields. Required unless `content` is given.",
  parameters: "Further parameters of the model's vendor.",
  webhook_url: 'A URL that is called once when the task ends. Without it, poll the task.',
  wait: 'Wait until the task ends and return its record. Also as `?wait=true`.',
  timeout: 'The maximum number of seconds to wait. Default 60. Also as `?timeout=`.',
} as const satisfies Record<keyof typeof videoRequest.shape, string>

/** Not a field of the common request: it is read only by the models that know it. */
const content = z
  .array(z.looseObject({ type: z.enum(['text', 'image_url', 'video_url', 'audio_url', 'draft_task']) }))
  .nullish()
  .meta({ description: "Seedance only: its vendor's own list of contents, instead of `input`." })

const described = z.looseObject({
  ...(Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [
      name,
      schema.meta({ description: notes[name as keyof typeof notes] }),
    ]),
  ) as typeof shape),
  content,
})

const acceptedVideo = z.object({
  id: text('The id of the task.'),
  model: text('As it was asked for.'),
  status: z.literal('submitted'),
  created_at: unixTime('When it was accepted.'),
})

const videoTask = z.looseObject({
  id: text('The id of the task.'),
  upstream_id: text("The vendor's id of the task, once it is known; the task can be retrieved by it too.").optional(),
  model: text('As it was asked for.'),
  status: z.enum(taskStates).meta({ description: 'The last three are final.' }),
  created_at: unixTime('When it was accepted.'),
  updated_at: unixTime('When its status last changed.'),
  content: z
    .looseObject({
      video_url: text('A link to the video that works for 24 hours; then null.').nullable(),
      last_frame_url: text('A link to the last frame, if it was requested.').nullable().optional(),
      expires_at: unixTime('When the links stop working.'),
      expired: z.boolean().optional(),
    })
    .nullable()
    .optional()
    .meta({ description: 'With a final status; null unless it is `succeeded`.' }),
  usage: z
    .looseObject({
      duration: z.number().meta({ description: 'Seconds, as billed.' }),
      resolution: text('As billed.'),
      aspect_ratio: text("The video's, if it is known.").optional(),
      total_tokens: z.int().optional().meta({ description: 'Where the vendor counts tokens.' }),
      credits: z.int().optional().meta({ description: 'Where the vendor counts credits.' }),
    })
    .nullable()
    .optional()
    .meta({ description: 'With a final status; null unless it is `succeeded`.' }),
  seed: z.int().nullable().optional().meta({
    description:
      'With a final status: the seed as reported by the vendor or given in the request; null if there is none.',
  }),
  error: z
    .object({ code: z.string(), message: z.string() })
    .nullish()
    .meta({ description: "With `failed`; otherwise absent, or null where the vendor's own record has null." }),
})

const videoList = z.object({
  object: z.literal('list'),
  data: z.array(videoTask),
  next: text('Give it as `after` for the next page; null on the last one.').nullable(),
})

const ask = {
  model: 'wan2.6-t2v',
  duration: 5,
  resolution: '720p',
  input: { prompt: 'A lighthouse at dusk, waves, slow pan' },
}

const json = JSON.stringify(ask)
const path = '/v1/videos/generations'
const url = `$TURNPIKE_URL${path}`
const bearer = '-H "Authorization: Bearer $TURNPIKE_KEY"'

/** The task id of the examples, which each language reads from the environment, like the address and the key. */
const aTask = {
  curl: '/$TASK',
  typescript: '/${process.env.TASK}',
  python: '/" + os.environ["TASK"]',
}

/** The official clients have no methods for these paths, so the samples send plain HTTP requests. */
function samples(method: 'GET' | 'POST' | 'DELETE', tail: string | typeof aTask, body?: string) {
  const verb = method === 'GET' ? '' : `-X ${method} `
  const sent = body === undefined ? '' : ` \\\n  -H "Content-Type: application/json" \\\n  -d '${body}'`
  const type = body === undefined ? '' : `, 'content-type': 'application/json'`
  const at = typeof tail === 'string' ? { curl: tail, typescript: tail, python: `${tail}"` } : tail
  return {
    curl: `curl ${verb}"${url}${at.curl}" \\\n  ${bearer}${sent}`,
    typescript: `const response = await fetch(\`\${process.env.TURNPIKE_URL}${path}${at.typescript}\`, {
  method: '${method}',
  headers: { authorization: \`Bearer \${process.env.TURNPIKE_KEY}\`${type} },${body === undefined ? '' : `\n  body: JSON.stringify(${body}),`}
})
console.log(await response.json())`,
    python: `import json, os, urllib.request

request = urllib.request.Request(
    os.environ["TURNPIKE_URL"] + "${path}${at.python},
    method="${method}",
    headers={"Authorization": "Bearer " + os.environ["TURNPIKE_KEY"], "Content-Type": "application/json"},${
      body === undefined ? '' : `\n    data=json.dumps(${body}).encode(),`
    }
)
print(json.load(urllib.request.urlopen(request)))`,
  }
}

const anId =
  "The task's id, or the vendor's id of it. Percent-encode ids that contain slashes, such as Veo's: `models%2F…`."

/** What the contract says about videos. */
export const videoOperations = {
  createVideo: {
    summary: 'Order a video',
    description: [
      'Videos are generated asynchronously: the answer is a task, which can be polled by its id, and `webhook_url` is ' +
        'called when it ends. The cost is then known from what the vendor counted; until then, the most it can cost is ' +
        'held. A task that fails, is cancelled or takes too long costs nothing.',
      '`duration`, `resolution` and `aspect_ratio` may also be given in `parameters`, in the way of the model; values that ' +
        'are given twice must agree.',
      'With `wait`, the response comes when the task has ended, as `200` with its record, or after `timeout` as `202`.',
    ].join('\n\n'),
    once: true,
    query: [
      {
        name: 'wait',
        description: 'The same as the field; takes precedence over it.',
        schema: { type: 'boolean' },
      },
      {
        name: 'timeout',
        description: 'The maximum number of seconds to wait; takes precedence over the field.',
        schema: { type: 'integer', minimum: 1, maximum: 300, default: 60 },
      },
    ],
    request: { schema: described, example: ask },
    accepted: { description: 'The task was accepted.', schema: acceptedVideo },
    answer: { description: 'With `wait`: the task has ended.', schema: videoTask, metered: true },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: samples('POST', '', json),
  },
  listVideos: {
    summary: 'List videos',
    description: "The account's tasks, newest first.",
    query: [
      {
        name: 'status',
        description: 'Only tasks with this status.',
        schema: { type: 'string', enum: taskStates },
      },
      { name: 'model', description: 'Only tasks of this model.', schema: { type: 'string' } },
      {
        name: 'from',
        description: 'The start of the period: unix seconds, a date, or a time with a time zone.',
        schema: { type: 'string' },
      },
      { name: 'to', description: 'The end of the period (exclusive).', schema: { type: 'string' } },
      {
        name: 'limit',
        description: 'The number of tasks. Default 20.',
        schema: { type: 'integer', minimum: 1, maximum: 100 },
      },
      { name: 'after', description: 'The `next` of the previous page.', schema: { type: 'string' } },
    ],
    answer: { description: 'The tasks.', schema: videoList },
    errors: [400, 401, 429, 503],
    samples: samples('GET', '?status=succeeded'),
  },
  retrieveVideo: {
    summary: 'Retrieve a video',
    description: [
      "A task by its id or by its vendor's id. The record is the vendor's own, with the fields below laid over it.",
      'Its links work for 24 hours after the video was made; its status and usage are kept for at least 30 days.',
    ].join('\n\n'),
    id: anId,
    answer: { description: 'The task.', schema: videoTask },
    errors: [401, 404, 429, 503],
    samples: samples('GET', aTask),
  },
  cancelVideo: {
    summary: 'Cancel a video',
    description:
      'Stops a task that has not begun, if its vendor can. Otherwise, or if the task has ended, the answer is a 409 with ' +
      'the code `not_cancellable`, and nothing changes.',
    id: anId,
    answer: { description: 'The cancelled task.', schema: videoTask },
    errors: [401, 404, 409, 429, 502, 503, 504],
    samples: samples('DELETE', aTask),
  },
} as const satisfies Record<string, OperationDocs>
