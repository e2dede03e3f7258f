import { z } from 'zod'
import { groupings } from '../usage.ts'

/** What usage and balance look like, for the reference and for tests; nothing is checked against these while serving. */
const text = (description: string) => z.string().meta({ description })
const count = (description: string) => z.int().min(0).meta({ description })
const dollars = (description: string) => text(`${description} Decimal dollars, as text.`)
const unixTime = (description: string) => count(`${description} Unix seconds.`)

const counts = {
  input_tokens: count('Input tokens that were neither read from nor written to a cache.'),
  cached_input_tokens: count('Input tokens read from the cache.'),
  cache_write_tokens: count('Input tokens written to the cache.'),
  cache_write_hour_tokens: count('Input tokens written to the cache for an hour.'),
  image_input_tokens: count('Tokens of pictures in the input.'),
  audio_input_tokens: count('Tokens of sound in the input.'),
  output_tokens: count('Output tokens, reasoning included.'),
  reasoning_tokens: count('Of the output tokens: thought, and not shown.'),
  image_output_tokens: count('Tokens of pictures in the output.'),
  audio_output_tokens: count('Tokens of sound in the output.'),
  characters: count('Characters spoken.'),
  video_tokens: count('Tokens of moving pictures.'),
  web_searches: count('Searches made by the vendor.'),
  images: count('Pictures made.'),
  video_seconds: count('Seconds of moving pictures made.'),
}

const sums = z.object({
  hour: unixTime('With `group_by=hour`: its start.').optional(),
  day: unixTime('With `group_by=day`: its start, in UTC.').optional(),
  model: text('With `group_by=model`.').optional(),
  key: text('With `group_by=key`: its id.').optional(),
  account: text('With `group_by=account`: its id.').optional(),
  capability: text('With `group_by=capability`: `chat` and others.').optional(),
  requests: count('Requests, those included that failed and cost nothing.'),
  cost: dollars('What they cost.'),
  ...counts,
})

const record = z.object({
  id: text('The `x-request-id` of the answer.'),
  key: text("The key's id."),
  model: text('The model that was asked.'),
  capability: text('`chat` and others.'),
  status: count('As answered.'),
  cost: dollars('What it cost.'),
  basis: text(
    '`vendor`: by what the vendor counted. `estimated`: cut off before that, or by a vendor that counts nothing. `policy_zero`: free.',
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
    .meta({ description: 'What was counted, in the words of the sums; null where nothing was.' }),
  streamed: z.boolean(),
  duration_ms: count('Milliseconds from the first byte to the last.'),
  created_at: unixTime('When it came.'),
})

const next = text('Give it as `after` for the next page; null on the last one.').nullable()

export const usageReport = z.union([
  z.object({
    data: z.array(sums).meta({ description: 'One line for each group, or one for all.' }),
    next,
    from: unixTime('The first whole hour of the sums; null from the beginning.').nullable(),
    to: unixTime('The end of the last one; null until now.').nullable(),
  }),
  z.object({ data: z.array(record).meta({ description: 'With `records=true`: newest first.' }), next }),
])

const cap = z.object({
  of: text('`key`, the calling one, or `account`.'),
  amount: dollars('What may be spent in the period.'),
  period: text('`total`, `day` or `month`, in UTC.'),
  spent: dollars('What has been spent in it.'),
  remaining: dollars('What is left of it, less what is set aside for requests that are running.'),
  resets_at: unixTime('When the period ends; null for `total`.').nullable(),
})

export const balance = z.object({
  balance: dollars('What the account has.'),
  held: dollars('Set aside for requests that are running.'),
  available: dollars('The balance less what is held.'),
  currency: z.literal('USD'),
  unlimited: z.boolean().meta({ description: 'Whether it is never refused for money.' }),
  caps: z.array(cap).meta({ description: 'Spending caps of the calling key and of its account.' }),
})

type QueryDocs = { readonly name: string; readonly description: string; readonly schema: object }

/** What `GET /v1/usage` takes. */
export const usageQuery: readonly QueryDocs[] = [
  {
    name: 'from',
    description: 'The beginning of the period: unix seconds, a date, or a time with its zone. Sums are of whole hours.',
    schema: { type: 'string' },
  },
  { name: 'to', description: 'The end of the period, not inside it.', schema: { type: 'string' } },
  {
    name: 'group_by',
    description: 'One line for each. Without it, one sum of all.',
    schema: { type: 'string', enum: groupings },
  },
  { name: 'key', description: '`self`: of the calling key alone.', schema: { type: 'string', enum: ['self'] } },
  { name: 'model', description: 'Sums of this model alone.', schema: { type: 'string' } },
  {
    name: 'records',
    description: '`true`: single requests instead of sums; takes no `group_by` and no `model`.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
  {
    name: 'limit',
    description: 'How many lines: 100 unless said otherwise, 20 for records.',
    schema: { type: 'integer', minimum: 1, maximum: 100 },
  },
  { name: 'after', description: 'The `next` of the page before.', schema: { type: 'string' } },
]
