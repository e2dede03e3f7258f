import { storeError } from '../store/faults.ts'
import { claimTasks, dueChannels, releaseClaims } from '../store/task-claims.ts'
import type { Task } from '../store/tasks.ts'
import { paceAt } from './adopt.ts'
import { lookAt } from './look.ts'
import { Allowances } from './pace.ts'
import type { TaskParts } from './parts.ts'

const everyMs = 200
const lookingMax = 64
// Longer than a poll takes; a node that dies in one leaves its tasks to the others after this.
const claimMs = 60_000

export type Poller = {
  /** Takes what is due and may be asked for now; gives how many tasks that were. The looks go on behind it. */
  turn(): Promise<number>
  /** Resolves when no look is under way. */
  idle(): Promise<void>
  /** Something is due now. */
  wake(): void
  close(): Promise<void>
}

/** Looks after every open task. Each node does, and each task is one node's at a time. */
export function startPoller(parts: TaskParts, ended: (task: Task) => void): Poller {
  const { store, clock, timers, node, mode, log } = parts
  const allowances = new Allowances(clock)
  const looking = new Set<Promise<void>>()
  let running: Promise<unknown> = releaseClaims(store.db, node, clock.now()).catch(complain)
  let isRunning = false
  let isWanted = false
  const state = { isClosed: false, isComplained: false }
  let callOff = timers.after(everyMs, run)

  /** Once, however long it lasts: a database that is away is complained of elsewhere too. */
  function complain(thrown: unknown): void {
    if (!state.isComplained) log.warn({ cause: String(thrown) }, 'video tasks cannot be looked at now')
    state.isComplained = true
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
      await turn().then(() => (state.isComplained = false), complain)
    }
    isRunning = false
    if (!state.isClosed) callOff = timers.after(everyMs, run)
  }

  async function turn(): Promise<number> {
    if (state.isClosed) return 0
    const now = clock.now()
    let taken = 0
    for (const { channel: id, rows } of await dueChannels(store.db, { now, mode })) {
      const room = lookingMax - looking.size
      const { perSecond } = paceAt(parts, { channel: id })
      const limit = allowances.take(id, perSecond, Math.min(rows, room))
      if (limit === 0) continue
      const claim = { owner: node, until: now + claimMs }
      const tasks = await claimTasks(store, { channel: id, limit, now, mode, claim })
      allowances.giveBack(id, limit - tasks.length)
      taken += tasks.length
      for (const task of tasks) begin(task)
    }
    return taken
  }

  function begin(task: Task): void {
    const look = lookOnce(task).finally(() => looking.delete(look))
    looking.add(look)
  }

  async function lookOnce(task: Task): Promise<void> {
    try {
      if ((await lookAt(parts, task)) === 'over') ended(task)
    } catch (thrown) {
      // Its claim runs out, and then somebody looks again.
      log.error({ task: task.id, cause: String(storeError(thrown)) }, 'a look at a task failed')
    }
  }

  async function idle(): Promise<void> {
    await running
    while (looking.size > 0) await Promise.all(looking)
  }

  return {
    turn,
    idle,
    wake() {
      if (state.isClosed) return
      callOff()
      run()
    },
    async close() {
      state.isClosed = true
      callOff()
      await idle()
    },
  }
}
