import { noUnits } from '../bill.ts'
import { errorForCode, type VendorError } from '../chat/errors.ts'
import type { Fields } from '../fields.ts'
import { openJson } from '../media/common.ts'
import type { World } from '../protocol.ts'
import { seeded } from '../seeded.ts'
import { readSteering, type Steering } from '../steering.ts'
import { type Creation, failureIn, type NewOrder } from '../video/creation.ts'
import { framesPerSecond } from '../video/mp4.ts'
import type { TaskFamily, VideoTask } from '../video/tasks.ts'
import { tellChange } from './callback.ts'
import { type Content, readContent } from './content.ts'
import { type Family, familyOf, sizeOf } from './families.ts'
import { readFlags } from './flags.ts'
import { arkDialect, invalidField } from './refusals.ts'
import { readSettings, type Settings } from './settings.ts'

/** What a Seedance task holds. */
export type SeedanceAsk = {
  readonly settings: Settings
  readonly content: Content
  /** What was really made. Seconds are whole: a fraction is dropped. */
  readonly frames: number
  readonly seconds: number
  readonly ratio: string
  readonly tokens: number
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

export const seedanceTasks: TaskFamily<SeedanceAsk> = {
  name: 'seedance',
  keptMs: 7 * 24 * 60 * 60 * 1_000,
  writeId(seed, createdAt) {
    const random = seeded(seed)
    const tail = Array.from({ length: 5 }, () => letters[Math.floor(random() * letters.length)]).join('')
    return `cgt-${new Date(createdAt).toISOString().replaceAll(/\D/g, '').slice(0, 14)}-${tail}`
  },
  tell: tellChange,
  withoutWords: (ask) => ({ ...ask, content: { ...ask.content, text: '' } }),
}

export const seedanceCreation: Creation<Fields, SeedanceAsk, VendorError> = {
  dialect: arkDialect,
  family: seedanceTasks,
  open: openJson,
  read(body, model, _call, world) {
    const family = familyOf(model.model)
    if (!family) throw arkDialect.wrongModel(model.model)
    const content = readContent(body.content, family)
    if (content.draftId === undefined) {
      return readOrder(body, family, content, readSteering(content.text))
    }
    const draft = findDraft(content.draftId, world)
    // The final video keeps what the draft was asked for, except fields that the new request sets.
    const kept = { duration: draft.ask.settings.seconds, ratio: draft.ask.settings.ratio, ...body, draft: false }
    return readOrder(kept, family, { ...content, text: draft.ask.content.text }, draft.steering)
  },
  write: ({ id }) => ({ text: JSON.stringify({ id }), headers: { 'x-request-id': `req_${id}` } }),
}

function findDraft(id: string, world: World): VideoTask<SeedanceAsk> {
  const draft = world.videos.of(seedanceTasks).find(id)
  if (!draft?.ask.settings.isDraft || draft.state !== 'succeeded') {
    throw invalidField('content[0].draft_task.id', `${id} is not a succeeded draft task`)
  }
  return draft
}

// Reference videos are not fetched, so each counts as this long.
const referenceSeconds = 5
// `sandbox:expire` ends a task after this time.
const expirySoonMs = 100

function readOrder(body: Fields, family: Family, content: Content, steering: Steering): NewOrder<SeedanceAsk> {
  const settings = readSettings(body, readFlags(content.text), family, content)
  // `adaptive` leaves the ratio to the first image or to the model; the simulator always takes 16:9.
  const ratio = settings.ratio === 'adaptive' ? '16:9' : settings.ratio
  const [width, height] = sizeOf(family, settings.resolution, ratio)
  const asked = steering.number('seconds') ?? settings.seconds
  const frames = settings.frames ?? asked * framesPerSecond + 1
  const seconds = Math.floor(frames / framesPerSecond)
  const inputFrames = content.videos * referenceSeconds * framesPerSecond
  const tokens = Math.floor((width * height * (frames + inputFrames)) / 1_024)
  const told = Math.max(0, steering.number('usage') ?? tokens)
  const sound = settings.generateAudio
  return {
    steering,
    ask: { settings, content, frames, seconds, ratio, tokens: told },
    clip: { width, height, frames, sound },
    units: {
      ...noUnits,
      video: {
        seconds,
        tokens: told,
        resolution: settings.resolution,
        sound,
        ...(content.videos > 0 && { hasInputVideo: true }),
        ...(settings.serviceTier === 'flex' && { isFlex: true }),
      },
    },
    failure: failureIn(steering, errorForCode),
    expiresAfterMs: steering.has('expire') ? expirySoonMs : settings.expiresAfterSeconds * 1_000,
  }
}
