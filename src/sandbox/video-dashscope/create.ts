import { noUnits } from '../bill.ts'
import { errorForCode, invalidParameter, requestIdFor } from '../dashscope/errors.ts'
import { nativeDialect } from '../dashscope/native.ts'
import { type Fields, parseFields, textIn } from '../fields.ts'
import type { Call } from '../protocol.ts'
import { readSteering, withoutSteering } from '../steering.ts'
import { type Creation, failureIn, type NewOrder } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import type { Failure, TaskFamily } from '../video/tasks.ts'
import { CodedRefusal } from '../refusal.ts'
import { promptOf, readWish, type Wish } from './check.ts'
import { type Family, familyOf, framesOf } from './families.ts'

/** What a Wan task holds. */
export type WanAsk = {
  readonly family: Family
  readonly wish: Wish
  readonly prompt: string
  readonly isExtended: boolean
  /** The seconds of the video itself, and of the references that are billed with it. */
  readonly outputSeconds: number
  readonly inputSeconds: number
  readonly requestId: string
}

export const wanTasks: TaskFamily<WanAsk> = {
  name: 'wan',
  keptMs: 24 * 60 * 60 * 1_000,
  writeId: (seed, createdAt) => requestIdFor(`${seed} ${createdAt}`),
  withoutWords: (ask) => ({ ...ask, prompt: '' }),
}

export const wanCreation: Creation<Fields, WanAsk, CodedRefusal> = {
  dialect: nativeDialect,
  family: wanTasks,
  open(call) {
    if (call.request.headers.get('x-dashscope-async') !== 'enable') {
      throw new CodedRefusal(403, 'AccessDenied', 'current user api does not support synchronous calls')
    }
    const body = readBody(call.text)
    return { model: textIn(body.model), body }
  },
  read(body, model, call) {
    const family = familyOf(model.model)
    if (!family) throw nativeDialect.wrongModel(model.model)
    return readOrder(body, family, call)
  },
  write({ id, ask }) {
    const answer = { output: { task_status: 'PENDING', task_id: id }, request_id: ask.requestId }
    return { text: JSON.stringify(answer), headers: { 'x-request-id': ask.requestId } }
  },
}

function readBody(text: string): Fields {
  const body = parseFields(text)
  if (body !== undefined) return body
  throw invalidParameter('Required body invalid, please check the request body format.')
}

// The billed seconds of all reference videos of a request together. They are not fetched, so their length is unknown.
// 2.6 cuts them to five; later versions count them to the hundredth.
const referenceSeconds = { '2.5': 5, '2.6': 5, '2.7': 5.02, '3.0': 5.02 } as const satisfies Record<
  Family['version'],
  number
>

function readOrder(body: Fields, family: Family, call: Call): NewOrder<WanAsk> {
  const { prompt, isExtended } = promptOf(body)
  const steering = readSteering(prompt)
  const { wish, failure: brokenRule } = tryWish(body, family, call)
  const outputSeconds = steering.number('seconds') ?? wish.seconds
  const inputSeconds = wish.hasVideo ? referenceSeconds[family.version] : 0
  const { frame, sound } = wish
  const video = { seconds: outputSeconds + inputSeconds, resolution: `${frame.tier}p`, sound }
  return {
    steering,
    ask: {
      family,
      wish,
      prompt: withoutSteering(prompt),
      isExtended,
      outputSeconds,
      inputSeconds,
      requestId: requestIdFor(call.text),
    },
    clip: { width: frame.width, height: frame.height, frames: outputSeconds * framesPerSecond, sound },
    units: { ...noUnits, video },
    failure: failureIn(steering, errorForCode) ?? brokenRule,
  }
}

/** Wan 2.5 refuses a broken rule at once; later versions accept the task and let it fail. */
function tryWish(body: Fields, family: Family, { request }: Call): { wish: Wish; failure?: Failure } {
  try {
    return { wish: readWish(body, family, request.headers) }
  } catch (error) {
    if (!(error instanceof CodedRefusal) || family.version === '2.5') throw error
    const [frame] = framesOf(family)
    return { wish: { frame, seconds: 5, sound: true, hasFirstFrame: false, hasVideo: false }, failure: error }
  }
}
