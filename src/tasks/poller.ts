import { SetBack } from '../base/clock.ts'
import { storeError } from '../store/faults.ts'
import {
  bringForward,
  claimTasks,
  dueChannels,
  hasWatchedTasks,
  releaseClaims,
  renewClaims,
} from '../store/task-claims.ts'
import { dropOldTasks } from '../store/task-retention.ts'
import type { Task } from '../store/tasks.ts'
import { paceAt } from './adopt.ts'
import { lookAt, type Unkept } from './look.ts'
import type { TaskParts } from './parts.ts'

const everyMs = 200
// While there is no task at all: one's own are told by `attend`, and another node looks after its own. Where that one dies,
// what it had claimed waits for a minute anyway, so that these seconds are not what anybody waits for.
const idleMs = 5_000
const lookingMax = 256
// A vendor that hangs keeps its own tasks waiting, and nobody else's.
const lookingAtOneMax = lookingMax / 4
// Films that are fetched, or wait for that; for the others somebody looks again later.
const keepingMax = 256
// Longer than a poll takes; a node that dies in one leaves its tasks to the others after this.
const claimMs = 60_000
const renewMs = claimMs / 3
// What is too old waits for a moment in which nobody is due, and goes in pieces that hold up nobody.
const tidyEveryMs = 60 * 60_000
// For so long at most: some never have a quiet moment.
const tidyMsMax = 24 * 60 * 60_000
const tidiedAtOnce = 100

export type Poller = {
  /** Takes what is due and may be asked for now; gives how many tasks that were. The looks go on behind it. */
  turn(): Promise<number>
  /** Resolves when no look is under way, and no film is being fetched. */
  idle(): Promise<void>
  /** Something is due now. */
  wake(): void
  /** There is a task again. */
  attend(): void
  close(): Promise<void>
}

/** Looks after every open task. Each node does, and each task is one node's at a time. */
export function startPoller(parts: TaskParts, ended: (task: Task) => void): Poller {
  const { store, clock, timers, node, mode, log, allowances } = parts
  const looking = new Map<string, Promise<void>>()
  const lookingAt = new Map<string, number>()
  const keeping = new Map<string, Promise<void>>()
  const missing = new Set<string>()
  const setBack = new SetBack(store, clock)
  let renewedAt = clock.monotonic()
  let turnsTaken = 0
  let tidiedAt = Number.NEGATIVE_INFINITY
  let running: Promise<unknown> = releaseClaims(store.db, node, store.now()).catch(complain)
  let isRunning = false
  let isWanted = false
  const state = { isClosed: false, isComplained: false, isIdle: false }
  let callOff = timers.after(everyMs, run)

  /** Once, however long it lasts: a database that is away is complained of elsewhere too. */
  function complain(thrown: unknown): void {
    if (!state.isComplained) log.warn({ cause: String(thrown) }, 'video tasks cannot be polled at the moment')
    state.isComplained = true
  }

  /** Once for each time that it goes. Whoever renames a channel, or takes it away, hardly means what is being made there. */
  function noteWhetherThere(id: string): void {
    if (parts.channels().all.some((channel) => channel.id === id)) missing.delete(id)
    else if (!missing.has(id)) {
      missing.add(id)
      const what =
        'videos were ordered at a channel that is no longer configured: they cannot be polled until it is configured again'
      log.error({ channel: id }, `${what}, and fail at their deadlines`)
    }
  }

  function run(): void {
    isWanted = true
    if (isRunning) return
    isRunning = true
    running = running.then(turns)
  }

  /** One after another, as long as somebody wants one: there is one timer, however many wake us. */
  async function turns(): Promise<void> {
    while (isWanted && !state.isClosed) {
      isWanted = false
      state.isIdle = false
      await turnOrRest().then(() => (state.isComplained = false), complain)
    }
    isRunning = false
    if (!state.isClosed) callOff = timers.after(state.isIdle ? idleMs : everyMs, run)
  }

  async function turnOrRest(): Promise<void> {
    const taken = await turn()
    state.isIdle = true // before it is asked: a task that comes meanwhile says otherwise
    if (taken + looking.size > 0 || (await hasWatchedTasks(store.db, mode))) state.isIdle = false
  }

  async function turn(): Promise<number> {
    if (state.isClosed) return 0
    await setBack.makeUp(async (ms) => {
      await bringForward(store.db, { owner: node, now: store.now(), ms })
      log.warn({ ms }, 'the clock was set back')
    })
    const now = store.now()
    const claim = { owner: node, until: now + claimMs }
    await renew(claim)
    let taken = 0
    for (const { channel: id, rows } of rotated(await dueChannels(store.db, { now, mode }), turnsTaken++)) {
      noteWhetherThere(id)
      const room = Math.min(lookingMax - looking.size, lookingAtOneMax - (lookingAt.get(id) ?? 0))
      const { perSecond } = paceAt(parts, { channel: id })
      const limit = allowances.take(id, perSecond, Math.min(rows, room))
      if (limit === 0) continue
      const claimed = await claimTasks(store, { channel: id, limit, now, mode, claim })
      // One whose claim ran out while it is being looked at, or kept: it has been claimed anew, and goes on.
      const tasks = claimed.filter(({ id: taskId }) => !looking.has(taskId) && !keeping.has(taskId))
      allowances.giveBack(id, limit - tasks.length)
      taken += tasks.length
      for (const task of tasks) begin(task)
    }
    await tidy(now, taken === 0)
    return taken
  }

  async function tidy(now: number, isQuiet: boolean): Promise<void> {
    if (clock.monotonic() - tidiedAt < (isQuiet ? tidyEveryMs : tidyMsMax)) return
    const dropped = await dropOldTasks(store, { endedBefore: now - parts.keepMs, mode, limit: tidiedAtOnce })
    // There may be more: the next quiet moment takes them.
    if (dropped < tidiedAtOnce) tidiedAt = clock.monotonic()
  }

  /** A film takes longer than a claim lasts. */
  async function renew(claim: { owner: string; until: number }): Promise<void> {
    if (keeping.size === 0 || clock.monotonic() - renewedAt < renewMs) return
    await renewClaims(store.db, [...keeping.keys()], claim)
    renewedAt = clock.monotonic()
  }

  function begin(task: Task): void {
    const { id, channel } = task
    const look = lookOnce(task).finally(() => {
      looking.delete(id)
      const left = (lookingAt.get(channel) ?? 0) - 1
      if (left > 0) lookingAt.set(channel, left)
      else lookingAt.delete(channel)
    })
    looking.set(id, look)
    lookingAt.set(channel, (lookingAt.get(channel) ?? 0) + 1)
  }

  async function lookOnce(task: Task): Promise<void> {
    try {
      const looked = await lookAt(parts, task)
      if (looked === 'over') ended(task)
      else if (looked !== 'open') await keepLater(task, looked)
    } catch (thrown) {
      failed(task, thrown)
    }
  }

  /** Its claim runs out, and then somebody looks again. */
  function failed(task: Task, thrown: unknown): void {
    log.error({ task: task.id, cause: String(storeError(thrown)) }, 'polling a task failed')
  }

  /** Behind the look, which makes room for others. */
  async function keepLater(task: Task, { keep, putOff }: Unkept): Promise<void> {
    if (keeping.has(task.id)) return
    if (keeping.size >= keepingMax) {
      await putOff()
      return
    }
    if (keeping.size === 0) renewedAt = clock.monotonic()
    const kept = keepOnce(task, keep).finally(() => keeping.delete(task.id))
    keeping.set(task.id, kept)
  }

  async function keepOnce(task: Task, keep: Unkept['keep']): Promise<void> {
    try {
      if ((await keep()) === 'over') ended(task)
    } catch (thrown) {
      failed(task, thrown)
    }
  }

  async function idle(): Promise<void> {
    await running
    while (looking.size + keeping.size > 0) await Promise.all([...looking.values(), ...keeping.values()])
  }

  return {
    turn,
    idle,
    wake() {
      if (state.isClosed) return
      callOff()
      run()
    },
    attend() {
      if (!state.isIdle || state.isClosed) return
      state.isIdle = false
      if (isRunning) return
      callOff()
      callOff = timers.after(everyMs, run)
    },
    async close() {
      state.isClosed = true
      callOff()
      await idle()
    },
  }
}

/** Each is the first in its turn. */
function rotated<T>(all: readonly T[], by: number): T[] {
  const at = all.length === 0 ? 0 : by % all.length
  return [...all.slice(at), ...all.slice(0, at)]
}
