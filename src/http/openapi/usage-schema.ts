import { z } from 'zod'
import { customerGroupings } from '../../reports/usage.ts'

/**
 * What usage and balance look like, for the reference and for tests; nothing is checked against these while serving.
 */
const text = (description: string) => z.string().meta({ description })
const count = (description: string) => z.int().min(0).meta({ description })
const dollars = (description: string) => text(`${description} Decimal dollars, as text.`)
const unixTime = (description: string) => count(`${description} Unix seconds.`)

const counts = {
  input_tokens: count('Input tokens that were neither read from nor written to a cache.'),
  cached_input_tokens: count('Input tokens read from the cache.'),
  cache_write_tokens: count('Input tokens written to the cache.'),
  cache_write_hour_tokens: count('Input tokens written to the cache for an hour.'),
  image_input_tokens: count('Image tokens in the input.'),
  audio_input_tokens: count('Audio tokens in the input.'),
  output_tokens: count('Output tokens, reasoning included.'),
  reasoning_tokens: count('The output tokens that were used for reasoning.'),
  image_output_tokens: count('Image tokens in the output.'),
  audio_output_tokens: count('Audio tokens in the output.'),
  characters: count('Characters spoken.'),
  video_tokens: count('Tokens of generated video.'),
  web_searches: count('Web searches made by the vendor.'),
  images: count('Generated images.'),
  video_seconds: z
    .number()
    .min(0)
    .meta({ description: 'Seconds of generated video, as billed. Sums count a started second as one.' }),
}

const sums = z.object({
  hour: unixTime('With `group_by=hour`: its start.').optional(),
  day: unixTime('With `group_by=day`: its start, in UTC.').optional(),
  model: text('With `group_by=model`.').optional(),
  key: text('With `group_by=key`: its id.').optional(),
  account: text('With `group_by=account`: its id.').optional(),
  capability: text('With `group_by=capability`: `chat` and others.').optional(),
  requests: count('Requests, including those that failed and cost nothing.'),
  cost: dollars('What they cost.'),
  ...counts,
})

const record = z.object({
  id: text('The `x-request-id` of the answer.'),
  key: text("The key's id."),
  model: text('The requested model.'),
  capability: text('`chat` and others.'),
  status: count('As answered; 499 if the client left, and the status of the failure if a stream broke off.'),
  cost: dollars('What it cost.'),
  basis: text(
    '`vendor`: as counted by the vendor. `estimated`: the answer broke off first, or the vendor reports no usage. `policy_zero`: free.',
  ),
  usage: z
    .object(counts)
    .partial()
    .extend({
      image_size: z.string().optional(),
      image_quality: z.string().optional(),
      video_resolution: z.string().optional(),
      video_sound: z.boolean().optional(),
    })
    .nullable()
    .meta({ description: 'The units used, named as in the totals; null if there are none.' }),
  streamed: z.boolean(),
  duration_ms: count('Milliseconds from the first byte to the last.'),
  created_at: unixTime('When the request arrived.'),
})

const next = text('Give it as `after` for the next page; null on the last one.').nullable()

export const usageReport = z.union([
  z.object({
    data: z.array(sums).meta({ description: 'One line per group, or a single one.' }),
    next,
    from: unixTime('The start of the first hour covered; null: from the beginning.').nullable(),
    to: unixTime('The end of the last hour covered; null: until now.').nullable(),
  }),
  z.object({ data: z.array(record).meta({ description: 'With `records=true`: newest first.' }), next }),
])

const cap = z.object({
  of: text('`key`, the calling one, or `account`.'),
  amount: dollars('How much may be spent in the period.'),
  period: text('`total`, `day` or `month`, in UTC.'),
  spent: dollars('How much has been spent in it.'),
  remaining: dollars(
    'How much is left of it, less what is held for videos and for requests that run on the node that answers.',
  ),
  resets_at: unixTime('When the period ends; null for `total`.').nullable(),
})

export const balance = z.object({
  balance: dollars('The balance of the account.'),
  held: dollars('The amount held for running requests.'),
  available: dollars('The balance less what is held.'),
  currency: z.literal('USD'),
  unlimited: z.boolean().meta({ description: 'Whether the account is never refused for lack of funds.' }),
  caps: z.array(cap).meta({ description: 'Spending caps of the calling key and of its account.' }),
})

type QueryDocs = { readonly name: string; readonly description: string; readonly schema: object }

/** What `GET /v1/usage` takes. */
export const usageQuery: readonly QueryDocs[] = [
  {
    name: 'from',
    description: 'The start of the period: unix seconds, a date, or a time with a time zone. Totals cover whole hours.',
    schema: { type: 'string' },
  },
  { name: 'to', description: 'The end of the period (exclusive).', schema: { type: 'string' } },
  {
    name: 'group_by',
    description: 'What to group by. Without it, a single total.',
    schema: { type: 'string', enum: customerGroupings },
  },
  { name: 'key', description: '`self`: only the calling key.', schema: { type: 'string', enum: ['self'] } },
  { name: 'model', description: 'Only this model.', schema: { type: 'string' } },
  {
    name: 'records',
    description: '`true`: single requests instead of totals; cannot be combined with `group_by` or `model`.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
  {
    name: 'limit',
    description: 'The number of lines. Default 100, or 20 for records.',
    schema: { type: 'integer', minimum: 1, maximum: 100 },
  },
  { name: 'after', description: 'The `next` of the previous page.', schema: { type: 'string' } },
]
