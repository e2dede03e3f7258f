import { z } from 'zod'
import { isAddressRange } from '../base/address-ranges.ts'
import { isHttpUrl } from '../base/http-url.ts'
import { currencyPattern } from '../base/money.ts'

const mebibyte = 1024 * 1024
const seconds = z.number().positive().max(86_400)
const bytes = z.int().min(1024)

// A path is appended to each of these addresses, and would become a part of a query.
const httpUrl = z
  .string()
  .refine((text) => isHttpUrl(text) && !text.endsWith('/'), 'must be an http or https address without a trailing slash')
  .refine((text) => !/[?#\s]/.test(text), 'must not have a query, a fragment or spaces')
  .refine((text) => !hasLogin(text), 'must not have a user name or a password: they would not be sent')
// A host with a scheme, a path or a wildcard would never be equal to what a client sends.
const host = z.string().regex(/^[^\s/*]+$/, 'must be written as in the Host header, such as tools.example.com:8443')
const currency = z.string().regex(currencyPattern, 'must be three capital letters, such as CNY')
const origin = z.string().refine(isOriginOrAny, "must be an origin such as https://example.com, or '*'")

// Vendors' curl examples show the address of a call: with that as the base address, every call would be a 404.
const isBase = (url: string) => !/\/(?:chat\/completions|messages|responses|embeddings)$/.test(url)
const notBase = 'must be the base address alone, without the path of a call such as /chat/completions'

export const channelEntry = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'must be lower-case letters, digits and hyphens'),
  vendor: z.string(),
  keys: z.array(z.string().min(1)).default([]),
  baseUrl: httpUrl.refine(isBase, notBase).optional(),
  weight: z.number().min(0).max(1_000_000).default(1),
  priority: z.int().min(0).max(1_000).default(0),
})
export type ChannelEntry = z.infer<typeof channelEntry>

const limits = z.strictObject({
  /** Large enough for a long conversation with a few inline images. */
  chatBodyBytesMax: bytes.default(32 * mebibyte),
  /** Prompts for images, with reference images inline. */
  imagesBodyBytesMax: bytes.default(32 * mebibyte),
  /** Thousands of texts to embed in one request. */
  embeddingsBodyBytesMax: bytes.default(8 * mebibyte),
  /** A form with the images to edit. */
  editsBodyBytesMax: bytes.default(64 * mebibyte),
  /** Prompts for videos, with first frames inline. */
  videosBodyBytesMax: bytes.default(32 * mebibyte),
  /** A tool call with images and whole conversations in its arguments. */
  mcpBodyBytesMax: bytes.default(32 * mebibyte),
  bodyBytesMax: bytes.default(mebibyte),
  bodyDepthMax: z.int().min(8).max(1_000).default(128),
  bodyKeysMax: z.int().min(100).default(100_000),
  authFailuresPerMinute: z.int().min(1).default(600),
  attemptsMax: z.int().min(1).max(10).default(3),
})

const timeouts = z.strictObject({
  connectSeconds: seconds.default(3),
  /** Until the first byte of a stream. */
  firstByteSeconds: seconds.default(120),
  /** Until the first byte of an answer in one piece: the vendor is silent while it makes a long one. */
  wholeAnswerSeconds: seconds.default(600),
  /** Between two bytes from the vendor; its pings count, too. */
  idleSeconds: seconds.default(60),
  /** Until a client that reads nothing of its stream is treated as gone. */
  readerSeconds: seconds.default(60),
  /** Until the client of a silent vendor's stream is sent a sign that the stream is alive. */
  quietSeconds: seconds.default(15),
  totalSeconds: seconds.default(3_600),
  /** After SIGTERM, the time that streams have to finish. */
  drainSeconds: seconds.default(600),
})

const bucketName = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/

const artifacts = z.strictObject({
  keep: z.boolean().default(false),
  hours: z.int().min(1).max(720).default(24),
  bytesMax: bytes.default(10 * 1024 * mebibyte),
  s3: z
    .strictObject({
      endpoint: httpUrl,
      bucket: z.string().regex(bucketName, 'must be the name of a bucket'),
      region: z.string().min(1).default('us-east-1'),
      accessKeyId: z.string().min(1),
      secretAccessKey: z.string().min(1),
    })
    .optional(),
})

/**
 * Every setting of `turnpike.yaml`. `turnpike.example.yaml` shows each with its default and the reason to change it; a
 * test keeps the two in step. Unknown keys are errors: a misspelt limit must not silently be no limit.
 */
export const fileSchema = z.strictObject({
  sandbox: z.boolean().optional(),
  channels: z.array(channelEntry).default([]),
  /** Checked by the catalogue, which knows what a model is. */
  models: z.array(z.unknown()).default([]),
  exchange: z.record(currency, z.string('a rate is a decimal above 0, in quotes')).default({}),
  limits: limits.prefault({}),
  timeouts: timeouts.prefault({}),
  billing: z
    .strictObject({
      mode: z.enum(['leased', 'strict']).default('leased'),
      sync: z.enum(['interval', 'always']).default('interval'),
    })
    .prefault({}),
  artifacts: artifacts.prefault({}),
  tasks: z
    .strictObject({
      /** Between two polls of a video task at first; three times as long once the task has run for a while. */
      pollSeconds: seconds.default(5),
      /** How long a creation whose answer was lost may still be under way at its vendor. */
      doubtSeconds: seconds.default(60),
      /** How long a task, its webhook event and that event's delivery attempts are kept after the task's end. */
      keepDays: z.int().min(30).max(3_650).default(90),
    })
    .prefault({}),
  webhooks: z.strictObject({ allowPrivate: z.boolean().default(false) }).prefault({}),
  mcp: z.strictObject({ port: z.int().min(0).max(65_535).optional(), hosts: z.array(host).default([]) }).prefault({}),
  publicUrl: httpUrl.optional(),
  trustedProxies: z
    .array(z.string().refine(isAddressRange, 'must be an IP address, or a range such as 10.0.0.0/8'))
    .default([]),
  cors: z.strictObject({ origins: z.array(origin).default([]) }).prefault({}),
  log: z.strictObject({ level: z.enum(['info', 'warn', 'error', 'silent']).default('info') }).prefault({}),
})
export type FileSettings = z.infer<typeof fileSchema>

function isOriginOrAny(text: string): boolean {
  if (text === '*') return true
  // A browser sends a whole origin, to which a pattern is never equal.
  return !text.includes('*') && URL.canParse(text) && new URL(text).origin === text
}

function hasLogin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.username !== '' || url.password !== '')
}
