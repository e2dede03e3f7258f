/**
 * The moments between two steps of a request's money at which a process can be made to end as if by kill -9.
 * `TURNPIKE_CRASH=<name>:<n>` kills it the n-th time it passes that point; tests check what the next start repairs.
 */
export const requestCrashPoints = [
  /** Money is held, nothing has been sent. */
  'after-hold',
  /** The journal says that the call is being sent; passed again when the vendor's response head has arrived. */
  'after-send',
  /** Part of a stream has gone to the client. */
  'mid-stream',
  /** The answer and its usage have arrived, nothing is recorded. */
  'after-usage',
  /** The settlement is recorded, the client has not been told. */
  'after-settle',
  /** Settlements are about to be written to the database. */
  'before-flush',
  /** Settlements are in the database, the journal does not say so yet. */
  'after-commit-before-mark',
  /** A lease was taken in the database, no request has used it. */
  'lease-refill',
  /** The node is stopping, or reads a stream to its end after its client left. */
  'drain',
] as const

/** The same for the life of a video task. */
export const taskCrashPoints = [
  /** The task and its hold are in the database, nothing has been sent. */
  'task-recorded',
  /** The vendor has answered, and only this process's memory has the answer. */
  'task-sent',
  /** The vendor's id is in the database, the client has not been told. */
  'task-created',
  /** A poll was answered, nothing is recorded of it. */
  'task-polled',
  /** The end of the task, its money and its event are in the database. */
  'task-terminal',
] as const

const crashPoints = [...requestCrashPoints, ...taskCrashPoints]
export type RequestCrashPoint = (typeof requestCrashPoints)[number]
export type CrashPoint = (typeof crashPoints)[number]

const armed = readArmed(process.env['TURNPIKE_CRASH'])

/** Costs one comparison when nothing is armed. */
export function crashPoint(name: CrashPoint): void {
  if (armed === undefined) return
  if (armed.name === name && --armed.left === 0) process.kill(process.pid, 'SIGKILL')
}

function readArmed(text: string | undefined): { readonly name: CrashPoint; left: number } | undefined {
  if (text === undefined || text === '') return undefined
  const [given = '', count = '1'] = text.split(':')
  const name = crashPoints.find((point) => point === given)
  if (name === undefined) throw new Error(`TURNPIKE_CRASH: no crash point "${given}"`)
  return { name, left: Number(count) }
}
