import { SetBack } from '../base/clock.ts'
import { NamedCounts } from '../base/named-counts.ts'
import { isUnavailable, storeError } from '../store/faults.ts'
import {
  bringForward,
  claimTasks,
  dropClaims,
  dueChannels,
  hasWatchedTasks,
  releaseClaims,
  renewClaims,
} from '../store/task-claims.ts'
import { dropOldTasks } from '../store/task-retention.ts'
import type { Task } from '../store/tasks.ts'
import { paceAt } from './adopt.ts'
import { isAtChannel } from './calls.ts'
import { pollTask, type Unkept } from './poll.ts'
import type { TaskParts } from './parts.ts'
import { Rhythm } from './rhythm.ts'

const pollsMax = 256
// A vendor that hangs delays only its own tasks.
const pollsAtOneMax = pollsMax / 4
// Videos that are being fetched or wait for it; those beyond are left to a later poll.
const keepingMax = 256
// Longer than a poll takes. Where a node dies in one, other nodes may claim its tasks after this time.
const claimMs = 60_000
const renewMs = claimMs / 3
// Old tasks are dropped while no task is due, in batches small enough to delay no poll.
const tidyEveryMs = 60 * 60_000
// After this long they are dropped anyway, because a busy installation may never have a quiet moment.
const tidyMsMax = 24 * 60 * 60_000
const tidiedAtOnce = 100

export type Poller = {
  /** Claims the tasks that are due and may be polled now, and gives their number. Their polls run in the background. */
  turn(): Promise<number>
  /** Resolves when no poll is under way and no video is being fetched. */
  idle(): Promise<void>
  /** To be called when a task is due now. */
  wake(): void
  /** To be called when there is a new task: ends the long pause of an idle poller. */
  attend(): void
  close(): Promise<void>
}

/** Polls every open task. Each node runs a poller, and a task is claimed by one node at a time. */
export function startPoller(parts: TaskParts, ended: (task: Task) => void): Poller {
  const { store, clock, timers, node, mode, log, allowances } = parts
  const polls = new PollsUnderway()
  const keeping = new Map<string, Promise<void>>()
  /** Tasks whose polls the database failed, and which this node still claims. */
  const unrecorded = new Set<string>()
  const missing = new Set<string>()
  const setBack = new SetBack(store, clock)
  let renewedAt = clock.monotonic()
  let turnsTaken = 0
  let tidiedAt = Number.NEGATIVE_INFINITY
  let hasComplained = false
  const rhythm = new Rhythm(timers, {
    begin: () => releaseClaims(store.db, node, store.now()),
    turn: async () => (await turn()) + polls.size > 0,
    isWatching: () => hasWatchedTasks(store.db, mode),
    succeeded() {
      hasComplained = false
    },
    failed: complain,
  })

  /** Warns once per outage, because other parts of the gateway report a missing database too. */
  function complain(thrown: unknown): void {
    if (!hasComplained) log.warn({ cause: String(thrown) }, 'video tasks cannot be polled at the moment')
    hasComplained = true
  }

  /** Reports each time a channel disappears: an operator who removes or renames one hardly means to lose its videos. */
  function noteWhetherThere(task: Task): void {
    const { channel, vendor } = task
    const place = `${channel}/${vendor}`
    if (parts.channels().all.some((one) => isAtChannel(task, one))) missing.delete(place)
    else if (!missing.has(place)) {
      missing.add(place)
      const what =
        'videos were ordered at a channel that is no longer configured: they cannot be polled until it is configured again'
      log.error({ channel, vendor }, `${what}, and fail ten minutes after their deadlines`)
    }
  }

  async function turn(): Promise<number> {
    if (rhythm.isClosed) return 0
    await setBack.makeUp(async (ms) => {
      await bringForward(store.db, { owner: node, now: store.now(), ms })
      log.warn({ ms }, 'the clock was set back')
    })
    const now = store.now()
    const claim = { owner: node, until: now + claimMs }
    await renew(claim)
    await dropUnrecorded()
    let taken = 0
    for (const { channel: id, rows } of rotated(await dueChannels(store.db, { now, mode }), turnsTaken++)) {
      const { perSecond } = paceAt(parts, { channel: id })
      const limit = allowances.take(id, perSecond, Math.min(rows, polls.roomAt(id)))
      if (limit === 0) continue
      const claimed = await claimTasks(store, { channel: id, limit, now, mode, claim })
      // Where the claim ran out on a task that this node still polls or fetches, it is claimed anew and work goes on.
      const tasks = claimed.filter(({ id: taskId }) => !polls.has(taskId) && !keeping.has(taskId))
      allowances.giveBack(id, limit - tasks.length)
      taken += tasks.length
      for (const task of tasks) begin(task)
    }
    await tidy(now, taken === 0 ? tidyEveryMs : tidyMsMax)
    return taken
  }

  async function tidy(now: number, afterMs: number): Promise<void> {
    if (clock.monotonic() - tidiedAt < afterMs) return
    const dropped = await dropOldTasks(store, { endedBefore: now - parts.keepMs, mode, limit: tidiedAtOnce })
    // After a full batch there may be more, which the next quiet moment drops.
    if (dropped < tidiedAtOnce) tidiedAt = clock.monotonic()
  }

  /** Fetching a video takes longer than a claim lasts. */
  async function renew(claim: { owner: string; until: number }): Promise<void> {
    if (keeping.size === 0 || clock.monotonic() - renewedAt < renewMs) return
    await renewClaims(store.db, [...keeping.keys()], claim)
    renewedAt = clock.monotonic()
  }

  /** Once the database answers again, nobody has to wait until the claims run out. */
  async function dropUnrecorded(): Promise<void> {
    const ids = [...unrecorded]
    if (ids.length === 0) return
    await dropClaims(store.db, ids, node)
    for (const id of ids) unrecorded.delete(id)
  }

  function begin(task: Task): void {
    noteWhetherThere(task)
    unrecorded.delete(task.id)
    polls.add(task, pollOnce(task))
  }

  async function pollOnce(task: Task): Promise<void> {
    try {
      const outcome = await pollTask(parts, task)
      if (outcome === 'over') ended(task)
      else if (outcome !== 'open') await keepLater(task, outcome)
    } catch (thrown) {
      failed(task, thrown)
    }
  }

  /** The task is polled again, by whichever node claims it next: where our own mistake failed it, in a minute. */
  function failed(task: Task, thrown: unknown): void {
    if (isUnavailable(thrown)) unrecorded.add(task.id)
    log.error({ task: task.id, cause: String(storeError(thrown)) }, 'polling a task failed')
  }

  /** Fetches the video in the background, so that the poll makes room for others. */
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
    await rhythm.quiet()
    while (polls.size + keeping.size > 0) await Promise.all([...polls.all(), ...keeping.values()])
  }

  return {
    turn,
    idle,
    wake: () => rhythm.wake(),
    attend: () => rhythm.attend(),
    async close() {
      rhythm.close()
      await idle()
    },
  }
}

/** The polls that are under way, by task, and how many there are at each channel. */
class PollsUnderway {
  readonly #byTask = new Map<string, Promise<void>>()
  readonly #atChannel = new NamedCounts()

  get size(): number {
    return this.#byTask.size
  }

  has(taskId: string): boolean {
    return this.#byTask.has(taskId)
  }

  all(): Iterable<Promise<void>> {
    return this.#byTask.values()
  }

  /** How many more may begin at a channel. */
  roomAt(channelId: string): number {
    return Math.min(pollsMax - this.size, pollsAtOneMax - this.#atChannel.of(channelId))
  }

  add({ id, channel }: Pick<Task, 'id' | 'channel'>, poll: Promise<void>): void {
    const ended = poll.finally(() => {
      this.#byTask.delete(id)
      this.#atChannel.add(channel, -1)
    })
    this.#byTask.set(id, ended)
    this.#atChannel.add(channel, 1)
  }
}

/** Starts at another element each time, so that every channel comes first in its turn. */
function rotated<T>(all: readonly T[], by: number): T[] {
  const at = all.length === 0 ? 0 : by % all.length
  return [...all.slice(at), ...all.slice(0, at)]
}
