import { z } from 'zod'
import { taskStates } from '../../capabilities/video.ts'
import { roleNames } from '../../wire/native/video-scene.ts'
import { videoRequest } from '../../wire/native/video-schema.ts'
import type { OperationDocs } from './operations.ts'

const text = (description: string) => z.string().meta({ description })
const unixTime = (description: string) => z.int().meta({ description: `${description} Unix seconds.` })

// Each is read by the models that have it; null means absent.
const input = z.looseObject({
  prompt: text('What it shows.').nullish(),
  media: z
    .array(
      z.looseObject({
        type: z.literal(Object.keys(roleNames)).meta({ description: 'What it is there for, as the model has it.' }),
        url: text('A public http(s) link; of a picture also a `data:` URL.'),
      }),
    )
    .nullish()
    .meta({ description: 'Pictures, films and sounds: Wan 2.7 and later, and other families.' }),
  img_url: text('The first frame: i2v of Wan 2.5 and 2.6; for short on other families.').nullish(),
  audio_url: text('A sound to go with it: Wan 2.5 and 2.6, and t2v of 2.7.').nullish(),
  reference_urls: z.array(z.string()).nullish().meta({ description: 'Pictures and films to follow: r2v of Wan 2.6.' }),
})

const parameters = z.looseObject({
  resolution: text('As above; in upper case too.').nullish(),
  size: text('Width and height in its place, such as `1280*720`: Wan, Sora.').nullish(),
  duration: z
    .union([z.int(), z.string()])
    .nullish()
    .meta({ description: 'As above; a text where the vendor has one.' }),
  audio: z.boolean().nullish().meta({ description: 'Whether it has sound, on models that leave the choice.' }),
  shot_type: text('`single` or `multi`: Wan 2.5, 2.6 and 3.0.').nullish(),
  prompt_extend: z.boolean().nullish().meta({ description: 'Whether the vendor may enrich the prompt: Wan, Hailuo.' }),
  watermark: z.boolean().nullish().meta({ description: 'Whether the vendor marks it, where it can.' }),
  seed: z
    .int()
    .nullish()
    .meta({ description: 'The same order and seed give a similar film, on models that take one.' }),
})

/** Told of here, and checked later: what `input` and `parameters` hold, by the model, and how long one may wait. */
const shape = {
  ...videoRequest.shape,
  input: input.nullish(),
  parameters: parameters.nullish(),
  timeout: z.int().min(1).max(300).nullish(),
}

const notes = {
  model: 'An id of the list of models that makes videos.',
  duration: "Seconds of the video; billing follows it. Default 5, or the model's own where it has no such length.",
  resolution:
    "`480p`, `720p` or `1080p`, as the model has it; billing follows it. Default `720p`, or the model's own where it " +
    'lacks that.',
  aspect_ratio: 'Default `16:9`; on models that can follow it, the shape of the first frame.',
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
  .nullish()
  .meta({ description: "Seedance alone: its vendor's own list of contents, in place of `input`." })

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
  error: z
    .object({ code: z.string(), message: z.string() })
    .nullish()
    .meta({ description: "With `failed`; else absent, or null where the vendor's own record has it so." }),
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
