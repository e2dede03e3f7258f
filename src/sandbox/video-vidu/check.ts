import { type Fields, isGiven, itemsIn, textIn } from '../fields.ts'
import { invalidField } from './errors.ts'

/** What a task is made from. Each kind has its own path. */
export const kinds = ['text2video', 'img2video', 'start-end2video', 'reference2video'] as const
export type Kind = (typeof kinds)[number]

export type Wish = {
  readonly prompt: string
  readonly seconds: number
  readonly resolution: '540p' | '720p' | '1080p'
  readonly ratio: (typeof ratios)[number]
  readonly sound: boolean
  readonly seed: number
  readonly payload: string
  readonly callbackUrl: string
}

const resolutions = ['720p', '540p', '1080p'] as const
const ratios = ['16:9', '9:16', '4:3', '3:4', '1:1'] as const
const promptCharactersMax = 5_000

/** How many images each kind takes. */
const images = {
  text2video: [0, 0],
  img2video: [1, 1],
  'start-end2video': [2, 2],
  reference2video: [1, 7],
} as const satisfies Record<Kind, readonly [least: number, most: number]>

export function readWish(body: Fields, kind: Kind): Wish {
  checkImages(body, kind)
  const prompt = readText(body, 'prompt')
  const needsPrompt = kind === 'text2video' || kind === 'reference2video'
  if (needsPrompt && prompt === '') throw invalidField('prompt', 'required')
  if (Array.from(prompt).length > promptCharactersMax) throw invalidField('prompt', 'too long')
  if (!needsPrompt && isGiven(body.aspect_ratio)) throw invalidField('aspect_ratio', 'the picture decides')
  const callbackUrl = readText(body, 'callback_url')
  if (callbackUrl !== '' && !URL.canParse(callbackUrl)) throw invalidField('callback_url', 'not a URL')
  return {
    prompt,
    seconds: readWhole(body, 'duration', { usual: 5, least: kind === 'reference2video' ? 3 : 1, most: 16 }),
    resolution: oneOf(body, 'resolution', resolutions),
    ratio: oneOf(body, 'aspect_ratio', ratios),
    sound: readSwitch(body, 'audio'),
    seed: readWhole(body, 'seed', { usual: 0, least: 0, most: 2_147_483_647 }),
    payload: readText(body, 'payload'),
    callbackUrl,
  }
}

function checkImages(body: Fields, kind: Kind): void {
  const [least, most] = images[kind]
  const given = itemsIn(body.images)
  if (given.length < least || given.length > most) throw invalidField('images', `expected ${least} to ${most}`)
  for (const image of given) {
    if (!/^(https?:\/\/[^/]|data:image\/\w+;base64,)/.test(textIn(image))) throw invalidField('images', 'not an image')
  }
}

function readText(body: Fields, name: string): string {
  const value = body[name] ?? ''
  if (typeof value !== 'string') throw invalidField(name, 'expected a string')
  return value
}

function readSwitch(body: Fields, name: string): boolean {
  const value = body[name] ?? false
  if (typeof value !== 'boolean') throw invalidField(name, 'expected true or false')
  return value
}

type Bounds = { readonly usual: number; readonly least: number; readonly most: number }

function readWhole(body: Fields, name: string, { usual, least, most }: Bounds): number {
  const value = body[name] ?? usual
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw invalidField(name, `expected ${least} to ${most}`)
}

/** The first word is the default. */
function oneOf<Word extends string>(body: Fields, name: string, words: readonly [Word, ...Word[]]): Word {
  const value = body[name] ?? words[0]
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw invalidField(name, `expected one of ${words.join(', ')}`)
}
