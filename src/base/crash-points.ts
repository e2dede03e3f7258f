/**
 * Where a process can be made to end as by kill -9: the moments between two steps of a request's money. Armed by
 * `TURNPIKE_CRASH=<name>:<n>`, which ends it at the n-th time it comes by; what a start then repairs is the test.
 */
export const requestCrashPoints = [
  /** Money is held, nothing has left. */
  'after-hold',
  /** The journal says that the call leaves; and again when the vendor's head has come. */
  'after-send',
  /** Some of a stream has gone to the client. */
  'mid-stream',
  /** The answer and its usage are here, nothing is recorded. */
  'after-usage',
  /** The settlement is recorded, the client does not know. */
  'after-settle',
  /** Settlements are about to go to the database. */
  'before-flush',
  /** They are in the database, the journal does not say so. */
  'after-commit-before-mark',
  /** A lease was taken in the database, nobody was served from it. */
  'lease-refill',
  /** The node stops, or reads on a stream whose client has left. */
  'drain',
] as const

/** The same for the life of a video task. */
export const taskCrashPoints = [
  /** The task and its hold are in the database, nothing has left. */
  'task-recorded',
  /** The vendor has answered, and nobody but this process knows what. */
  'task-sent',
  /** The vendor's id is in the database, the client does not know. */
  'task-created',
  /** A poll was answered, nothing of it is recorded. */
  'task-polled',
  /** The end of the task, its money and its event are in the database. */
  'task-terminal',
] as const

const crashPoints = [...requestCrashPoints, ...taskCrashPoints]
export type RequestCrashPoint = (typeof requestCrashPoints)[number]
export type CrashPoint = (typeof crashPoints)[number]

const armed = readArmed(process.env['TURNPIKE_CRASH'])

/** Costs one comparison where nothing is armed. */
export function crashPoint(name: CrashPoint): void {
  if (armed === undefined) return
  if (armed.name === name && --armed.left === 0) process.kill(process.pid, 'SIGKILL')
}

function readArmed(text: string | undefined): { name: string; left: number } | undefined {
  if (text === undefined || text === '') return undefined
  const [name = '', count = '1'] = text.split(':')
  if (!(crashPoints as readonly string[]).includes(name)) throw new Error(`TURNPIKE_CRASH: no crash point "${name}"`)
  return { name, left: Number(count) }
}
