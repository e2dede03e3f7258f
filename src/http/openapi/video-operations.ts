import { z } from 'zod'
import { taskStates } from '../../capabilities/video.ts'
import { videoRequest } from '../../wire/native/video-schema.ts'
import type { OperationDocs } from './operations.ts'

const text = (description: string) => z.string().meta({ description })
const unixTime = (description: string) => z.int().meta({ description: `${description} Unix seconds.` })

const notes = {
  model: 'An id of the list of models that makes videos.',
  duration: 'Seconds of the video; billing follows it.',
  resolution: '`480p`, `720p` or `1080p`, as the model has it; billing follows it.',
  aspect_ratio: 'Such as `16:9`.',
  input:
    'What it is made from: a `prompt`, and pictures, films or sound in the way of the model. Required, but for `content`.',
  parameters: "What else the model's vendor takes.",
  webhook_url: 'Is told once, when the task is over. Without it, ask for the task from time to time.',
  wait: 'Wait for the end and answer with the record. Also as `?wait=true`.',
  timeout: 'How many seconds to wait at most; 60 unless said otherwise. Also as `?timeout=`.',
} as const satisfies Record<keyof typeof videoRequest.shape, string>

/** Read where it stands by the models that know it, and no business of the others. */
const content = z
  .array(z.looseObject({ type: z.enum(['text', 'image_url', 'video_url', 'audio_url', 'draft_task']) }))
  .optional()
  .meta({ description: "Seedance alone: its vendor's own list of contents, in place of `input`." })

const described = z.looseObject({
  ...(Object.fromEntries(
    Object.entries(videoRequest.shape).map(([name, schema]) => [
      name,
      schema.meta({ description: notes[name as keyof typeof notes] }),
    ]),
  ) as typeof videoRequest.shape),
  content,
})

const acceptedVideo = z.object({
  id: text('The task, for as long as it is kept.'),
  model: text('As it was asked for.'),
  status: z.literal('submitted'),
  created_at: unixTime('When it was accepted.'),
})

const videoTask = z.looseObject({
  id: text('The task.'),
  upstream_id: text("The vendor's own id of it, once that is known: it can be asked for by this too.").optional(),
  model: text('As it was asked for.'),
  status: z.enum(taskStates).meta({ description: 'The last three are final.' }),
  created_at: unixTime('When it was accepted.'),
  updated_at: unixTime('When its status last changed.'),
  content: z
    .looseObject({
      video_url: text('Where the video is, for 24 hours; then null.').nullable(),
      last_frame_url: text('Its last picture, where that was asked for.').nullable().optional(),
      expires_at: unixTime('Until when the links work.'),
      expired: z.boolean().optional(),
    })
    .nullable()
    .optional()
    .meta({ description: 'With a final status; null unless it is `succeeded`.' }),
  usage: z
    .looseObject({
      duration: z.number().meta({ description: 'Seconds, as billed.' }),
      resolution: text('As billed.'),
      aspect_ratio: text("The film's, where that is known.").optional(),
      total_tokens: z.int().optional().meta({ description: 'Where the vendor counts those.' }),
      credits: z.int().optional().meta({ description: 'The vendor’s, where it counts those.' }),
    })
    .nullable()
    .optional()
    .meta({ description: 'With a final status; null unless it is `succeeded`.' }),
  seed: z.int().nullable().optional().meta({
    description: 'With a final status: as the vendor returns it, or as it was given; null where nobody named one.',
  }),
  error: z.object({ code: z.string(), message: z.string() }).optional().meta({ description: 'With `failed`.' }),
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

/** The task of an example: where each language finds it, beside the address and the key. */
const aTask = {
  curl: '/$TASK',
  typescript: '/${process.env.TASK}',
  python: '/" + os.environ["TASK"]',
}

/** The official clients have no word for these paths, so they are called by hand. */
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
  "The task's id, or its vendor's own. One that has slashes in it, as Veo's have, is percent-encoded: `models%2F…`."

/** What the contract says about videos. */
export const videoOperations = {
  createVideo: {
    summary: 'Order a video',
    description: [
      'Videos are made asynchronously: the answer is a task, which is asked for by its id, or tells `webhook_url` when it ' +
        'is over. What it costs is known then, by what the vendor counted; until then the most it can cost is set aside. ' +
        'A task that fails, is cancelled or takes too long costs nothing.',
      '`duration`, `resolution` and `aspect_ratio` may stand in `parameters` too, in the way of the model; where several ' +
        'places say one, they have to agree.',
      'With `wait` the answer comes when the task is over, as `200` with its record, or after the `timeout` as `202`.',
    ].join('\n\n'),
    once: true,
    query: [
      {
        name: 'wait',
        description: 'As the field; this one counts where both are given.',
        schema: { type: 'boolean' },
      },
      {
        name: 'timeout',
        description: 'Seconds to wait at most, as the field; this one counts where both are given.',
        schema: { type: 'integer', minimum: 1, maximum: 300, default: 60 },
      },
    ],
    request: { schema: described, example: ask },
    accepted: { description: 'The task was accepted.', schema: acceptedVideo },
    answer: { description: 'With `wait`: the task is over.', schema: videoTask, metered: true },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: samples('POST', '', json),
  },
  listVideos: {
    summary: 'List videos',
    description: "The account's tasks, newest first.",
    query: [
      {
        name: 'status',
        description: 'Only those with this status.',
        schema: { type: 'string', enum: taskStates },
      },
      { name: 'model', description: 'Only those of this model.', schema: { type: 'string' } },
      { name: 'from', description: 'Unix seconds, a date, or a time with its zone.', schema: { type: 'string' } },
      { name: 'to', description: 'The end, not included.', schema: { type: 'string' } },
      {
        name: 'limit',
        description: 'How many: 20 unless said otherwise.',
        schema: { type: 'integer', minimum: 1, maximum: 100 },
      },
      { name: 'after', description: 'The `next` of the page before.', schema: { type: 'string' } },
    ],
    answer: { description: 'The tasks.', schema: videoList },
    errors: [400, 401, 429, 503],
    samples: samples('GET', '?status=succeeded'),
  },
  retrieveVideo: {
    summary: 'Retrieve a video',
    description: [
      "A task by its id, or by that of the model's vendor. The record is the vendor's own, with the fields below laid " +
        'over it.',
      'Its links work for 24 hours after the vendor had made it; its status and usage are kept for at least 30 days.',
    ].join('\n\n'),
    id: anId,
    answer: { description: 'The task.', schema: videoTask },
    errors: [401, 404, 429, 503],
    samples: samples('GET', aTask),
  },
  cancelVideo: {
    summary: 'Cancel a video',
    description:
      'Stops a task that has not begun, where its vendor can. Where it cannot, or the task is over, the answer is a 409 ' +
      'with the code `not_cancellable`, and nothing changes.',
    id: anId,
    answer: { description: 'The cancelled task.', schema: videoTask },
    errors: [401, 404, 409, 429, 502, 503, 504],
    samples: samples('DELETE', aTask),
  },
} as const satisfies Record<string, OperationDocs>
