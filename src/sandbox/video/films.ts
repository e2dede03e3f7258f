import { type Fields, isFields, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { readSteering } from '../steering.ts'
import type { TaskFamily, VideoState, VideoTask, Writable } from './tasks.ts'

type Task<Ask> = Writable<VideoTask<Ask>>

/** A task as it is kept: as it is, without what its customer said. */
type Film<Ask> = Omit<Task<Ask>, 'steering' | 'origin' | 'model'> & {
  readonly words: string
  readonly origin?: string
  /** With its prices, which are larger than a number of JSON: a text of its own. */
  readonly model: string
}

/** The simulators' own address is left out: they may have another when it is read. */
export function writeFilm<Ask>(
  { steering, origin, model, ...task }: VideoTask<Ask>,
  family: TaskFamily<Ask>,
  own: string,
): Film<Ask> {
  const { failure } = task
  return {
    ...task,
    model: JSON.stringify(model, writeBig),
    ask: family.withoutWords(task.ask),
    // What is thrown is an error, whose message JSON would leave out.
    failure: failure && { code: failure.code, message: failure.message },
    words: steering.words(),
    ...(origin !== own && { origin }),
  }
}

/** Undefined where something is missing: somebody has written into the file. */
export function readFilm<Ask>(film: Fields, own: string): Task<Ask> | undefined {
  if (!isFilm<Ask>(film)) return undefined
  const { words, origin = own, model: written, ...task } = film
  const model = readModel(written)
  if (model === undefined) return undefined
  return {
    ...task,
    model,
    origin,
    steering: readSteering(words),
    // JSON leaves out what is undefined.
    oddWord: film.oddWord,
    startedAt: film.startedAt,
    endedAt: film.endedAt,
  }
}

const states: ReadonlySet<string> = new Set<VideoState>([
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
])

/** Believes the family's own part, which only its type knows: it was written by the same simulators. */
function isFilm<Ask>(film: Fields): film is Fields & Film<Ask> {
  const numbers = [film.seed, film.createdAt, film.changedAt, film.polls]
  const texts = [film.id, film.words, film.model]
  return (
    numbers.every((value) => typeof value === 'number') &&
    texts.every((value) => typeof value === 'string') &&
    states.has(textIn(film.state)) &&
    isFields(film.clip) &&
    isFields(film.units) &&
    'ask' in film
  )
}

function readModel(text: string): SandboxModel | undefined {
  try {
    const model: SandboxModel = JSON.parse(text, readBig)
    return isFields(model.prices) ? model : undefined
  } catch {
    return undefined
  }
}

function writeBig(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? { big: String(value) } : value
}

function readBig(_key: string, value: unknown): unknown {
  return isFields(value) && typeof value.big === 'string' ? BigInt(value.big) : value
}
