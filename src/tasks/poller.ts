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
import type { Claim } from '../store/task-schema.ts'
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
const fetchesMax = 256
// Longer than a poll takes. Where a node dies in one, other nodes may claim its tasks after this time.
const claimMs = 60_000
const renewMs = claimMs / 3
// Old tasks are dropped every hour while no task is due, in batches small enough to delay no poll. After a day they are
// dropped anyway, because a busy installation may never have a quiet moment.
const tidyAfterMs = { quiet: 60 * 60_000, busy: 24 * 60 * 60_000 } as const
const tidiedAtOnce = 100

/** Polls every open task. Each node runs a poller, and a task is claimed by one node at a time. */
export class Poller {
  readonly #parts: TaskParts
  readonly #ended: (task: Task) => void
  readonly #polls = new PollsUnderway()
  readonly #fetches: FetchesUnderway
  /** Tasks whose polls the database failed, and which this node still claims. */
  readonly #unrecorded = new Set<string>()
  readonly #missing: MissingChannels
  readonly #retention: Retention
  readonly #setBack: SetBack
  readonly #rhythm: Rhythm
  #turnsTaken = 0
  #hasComplained = false

  constructor(parts: TaskParts, ended: (task: Task) => void) {
    const { store, node, mode } = parts
    this.#parts = parts
    this.#ended = ended
    this.#fetches = new FetchesUnderway(parts)
    this.#missing = new MissingChannels(parts)
    this.#retention = new Retention(parts)
    this.#setBack = new SetBack(store, parts.clock)
    this.#rhythm = new Rhythm(parts.timers, {
      begin: () => releaseClaims(store.db, node, store.now()),
      turn: async () => (await this.turn()) + this.#polls.size > 0,
      isWatching: () => hasWatchedTasks(store.db, mode),
      succeeded: () => {
        this.#hasComplained = false
      },
      failed: (thrown) => this.#complain(thrown),
    })
  }

  /** Claims the tasks that are due and may be polled now, and gives their number. Their polls run in the background. */
  async turn(): Promise<number> {
    if (this.#rhythm.isClosed) return 0
    const { store, node, mode, log, allowances } = this.#parts
    await this.#setBack.makeUp(async (ms) => {
      await bringForward(store.db, { owner: node, now: store.now(), ms })
      log.warn({ ms }, 'the clock was set back')
    })
    const now = store.now()
    const claim = { owner: node, until: now + claimMs }
    await this.#fetches.renew(claim)
    await this.#dropUnrecorded()
    let taken = 0
    for (const { channel: id, rows } of rotated(await dueChannels(store.db, { now, mode }), this.#turnsTaken++)) {
      const { perSecond } = paceAt(this.#parts, { channel: id })
      const limit = allowances.take(id, perSecond, Math.min(rows, this.#polls.roomAt(id)))
      if (limit === 0) continue
      const claimed = await claimTasks(store, { channel: id, limit, now, mode, claim })
      // Where the claim ran out on a task that this node still polls or fetches, it is claimed anew and work goes on.
      const tasks = claimed.filter(({ id: taskId }) => !this.#polls.has(taskId) && !this.#fetches.has(taskId))
      allowances.giveBack(id, limit - tasks.length)
      taken += tasks.length
      for (const task of tasks) this.#begin(task)
    }
    await this.#retention.drop(now, taken === 0 ? 'quiet' : 'busy')
    return taken
  }

  /** Resolves when no poll is under way and no video is being fetched. */
  async idle(): Promise<void> {
    await this.#rhythm.quiet()
    const [polls, fetches] = [this.#polls, this.#fetches]
    while (polls.size + fetches.size > 0) await Promise.all([...polls.all(), ...fetches.all()])
  }

  /** To be called when a task is due now. */
  wake(): void {
    this.#rhythm.wake()
  }

  /** To be called when there is a new task: ends the long pause of an idle poller. */
  attend(): void {
    this.#rhythm.attend()
  }

  async close(): Promise<void> {
    this.#rhythm.close()
    await this.idle()
  }

  /** Warns once per outage, because other parts of the gateway report a missing database too. */
  #complain(thrown: unknown): void {
    const { log } = this.#parts
    if (!this.#hasComplained) log.warn({ cause: String(thrown) }, 'video tasks cannot be polled at the moment')
    this.#hasComplained = true
  }

  /** Once the database answers again, nobody has to wait until the claims run out. */
  async #dropUnrecorded(): Promise<void> {
    const ids = [...this.#unrecorded]
    if (ids.length === 0) return
    await dropClaims(this.#parts.store.db, ids, this.#parts.node)
    for (const id of ids) this.#unrecorded.delete(id)
  }

  #begin(task: Task): void {
    this.#missing.note(task)
    this.#unrecorded.delete(task.id)
    this.#polls.add(task, this.#pollOnce(task))
  }

  async #pollOnce(task: Task): Promise<void> {
    try {
      const outcome = await pollTask(this.#parts, task)
      if (outcome === 'over') this.#ended(task)
      else if (outcome !== 'open') await this.#keepLater(task, outcome)
    } catch (thrown) {
      this.#failed(task, thrown)
    }
  }

  /** Fetches the video in the background, so that the poll makes room for others. */
  async #keepLater(task: Task, { keep, putOff }: Unkept): Promise<void> {
    if (this.#fetches.has(task.id)) return
    if (this.#fetches.isFull) await putOff()
    else this.#fetches.begin(task.id, () => this.#keepOnce(task, keep))
  }

  async #keepOnce(task: Task, keep: Unkept['keep']): Promise<void> {
    try {
      if ((await keep()) === 'over') this.#ended(task)
    } catch (thrown) {
      this.#failed(task, thrown)
    }
  }

  /** The task is polled again, by whichever node claims it next: where our own mistake failed it, in a minute. */
  #failed(task: Task, thrown: unknown): void {
    if (isUnavailable(thrown)) this.#unrecorded.add(task.id)
    this.#parts.log.error({ task: task.id, cause: String(storeError(thrown)) }, 'polling a task failed')
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

/** Videos that are being fetched, or wait for it, by task. */
class FetchesUnderway {
  readonly #parts: Pick<TaskParts, 'store' | 'clock'>
  readonly #byTask = new Map<string, Promise<void>>()
  #renewedAt = 0

  constructor(parts: Pick<TaskParts, 'store' | 'clock'>) {
    this.#parts = parts
  }

  get size(): number {
    return this.#byTask.size
  }

  get isFull(): boolean {
    return this.size >= fetchesMax
  }

  has(taskId: string): boolean {
    return this.#byTask.has(taskId)
  }

  all(): Iterable<Promise<void>> {
    return this.#byTask.values()
  }

  begin(taskId: string, fetch: () => Promise<void>): void {
    if (this.size === 0) this.#renewedAt = this.#parts.clock.monotonic()
    const fetched = fetch().finally(() => this.#byTask.delete(taskId))
    this.#byTask.set(taskId, fetched)
  }

  /** Renews the claims on their tasks: fetching a video takes longer than a claim lasts. */
  async renew(claim: Claim): Promise<void> {
    const { store, clock } = this.#parts
    if (this.size === 0 || clock.monotonic() - this.#renewedAt < renewMs) return
    await renewClaims(store.db, [...this.#byTask.keys()], claim)
    this.#renewedAt = clock.monotonic()
  }
}

/** Reports each time a channel disappears: an operator who removes or renames one hardly means to lose its videos. */
class MissingChannels {
  readonly #parts: Pick<TaskParts, 'channels' | 'log'>
  readonly #reported = new Set<string>()

  constructor(parts: Pick<TaskParts, 'channels' | 'log'>) {
    this.#parts = parts
  }

  note(task: Task): void {
    const { channels, log } = this.#parts
    const { channel, vendor } = task
    const place = `${channel}/${vendor}`
    if (channels().all.some((one) => isAtChannel(task, one))) this.#reported.delete(place)
    else if (!this.#reported.has(place)) {
      this.#reported.add(place)
      const what =
        'videos were ordered at a channel that is no longer configured: they cannot be polled until it is configured again'
      log.error({ channel, vendor }, `${what}, and fail ten minutes after their deadlines`)
    }
  }
}

/** Drops the tasks that ended long ago. */
class Retention {
  readonly #parts: Pick<TaskParts, 'store' | 'clock' | 'mode' | 'keepMs'>
  #doneAt = Number.NEGATIVE_INFINITY

  constructor(parts: Pick<TaskParts, 'store' | 'clock' | 'mode' | 'keepMs'>) {
    this.#parts = parts
  }

  async drop(now: number, moment: keyof typeof tidyAfterMs): Promise<void> {
    const { store, clock, mode, keepMs } = this.#parts
    if (clock.monotonic() - this.#doneAt < tidyAfterMs[moment]) return
    const dropped = await dropOldTasks(store, { endedBefore: now - keepMs, mode, limit: tidiedAtOnce })
    // After a full batch there may be more, which the next quiet moment drops.
    if (dropped < tidiedAtOnce) this.#doneAt = clock.monotonic()
  }
}

/** Starts at another element each time, so that every channel comes first in its turn. */
function rotated<T>(all: readonly T[], by: number): T[] {
  const at = all.length === 0 ? 0 : by % all.length
  return [...all.slice(at), ...all.slice(0, at)]
}
