import { unixSeconds } from '../base/moment.ts'
import { showDollars } from '../base/money.ts'
import { pause } from '../base/pause.ts'
import { reportTask, reportTasks, type ShownTask } from '../reports/tasks.ts'
import type { Store } from '../store/open.ts'
import type { StoredTaskState } from '../store/task-schema.ts'
import { typicalTaskMs } from '../store/task-lists.ts'
import { type Task, taskById } from '../store/tasks.ts'
import { isOver } from '../tasks/state.ts'
import { inEitherMode, withInstallation, type InstallationOptions as Options } from './installation.ts'
import { whose } from './keys.ts'
import { accountColumn, readFilter, readPage, sayPage, type FilterOptions, type PageOptions } from './listing.ts'
import { say, sayJson, sheet, showTime, type Column } from './output.ts'
import { bar, type Progress } from './progress.ts'

type Listed = FilterOptions &
  PageOptions & { readonly model?: string; readonly state?: StoredTaskState; readonly inDoubt?: boolean }

/** `turnpike tasks list` */
export async function list(options: Options & Listed): Promise<void> {
  const { model, state, inDoubt, json } = options
  const asked = readPage(options)
  await withInstallation(options, async ({ store, mode }) => {
    const filter = {
      ...(await readFilter(store, mode, options)),
      model,
      states: state && [state],
      inDoubt,
    }
    const page = await reportTasks(store.db, filter, asked)
    sayPage(page, {
      json,
      columns: columns(await accountColumn(store, page.data)),
      nothing: `No tasks were found in ${mode} mode.`,
    })
  })
}

const columns = (whose: Column<ShownTask>): Column<ShownTask>[] => [
  { name: 'TIME', show: ({ created_at: at }) => showTime(at * 1000) },
  whose,
  { name: 'MODEL', show: ({ model }) => model },
  { name: 'STATE', show: stateOf },
  { name: 'HELD', align: 'right', show: ({ held }) => amount(held) },
  { name: 'CHANNEL', show: ({ channel }) => channel },
  { name: 'ERROR', show: ({ error }) => error?.code ?? '-' },
  { name: 'ID', show: ({ id }) => id },
]

function amount(dollars: string | null): string {
  return dollars === null ? '-' : showDollars(dollars)
}

function stateOf({ state, in_doubt: isInDoubt }: Pick<ShownTask, 'state' | 'in_doubt'>): string {
  return isInDoubt ? `${state} (in doubt)` : state
}

/** `turnpike tasks show` */
export async function show(id: string, options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
    const task = await taskNamed(store, id)
    const row = await reportTask(store.db, task)
    if (options.json) return sayJson(row)
    const { error, created_at: _, updated_at: __, finished_at: ___, deadline: ____, next_poll_at: next, ...facts } = row
    const shown = Object.entries(facts).map(([name, value]) => [name, value === null ? '-' : String(value)] as const)
    say(
      sheet({
        ...Object.fromEntries(shown),
        ...(await whose(store, row)),
        held: amount(row.held),
        cost: amount(row.cost),
        error: error === null ? '-' : `${error.code}: ${error.message}`,
        created: showTime(task.createdAt),
        finished: task.finishedAt === null ? '-' : showTime(task.finishedAt),
        deadline: showTime(task.deadline),
        'next poll': next === null ? '-' : showTime(next * 1000),
      }),
    )
  })
}

async function taskNamed(store: Store, id: string): Promise<Task> {
  const task = await taskById(store.db, { scope: 'every-account', id })
  if (task === undefined) throw new Error(`there is no task "${id}"; turnpike tasks list shows their ids`)
  return task
}

const everyMs = 1_000
const frameMs = 200

/** `turnpike tasks watch`: a bar on a terminal, a line for each change elsewhere. Exits with 1 if no video was made. */
export async function watch(id: string, options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
    const isLive = process.stdout.isTTY && !options.json
    let task = await taskNamed(store, id)
    const usualMs = await typicalTaskMs(store.db, task.model)
    let said = ''
    let readAt = performance.now()
    for (;;) {
      const progress = progressOf(task, store.now(), usualMs)
      if (isLive) process.stdout.write(`\r${bar(progress, process.stdout.columns)}`)
      else if (progress.state !== said) sayChange(task, progress, options)
      said = progress.state
      if (isOver(task.state)) break
      await pause(isLive ? frameMs : everyMs)
      if (performance.now() - readAt < everyMs) continue
      task = await taskNamed(store, id)
      readAt = performance.now()
    }
    if (isLive) say()
    if (task.failure !== null && !options.json) say(`${task.failure.code}: ${task.failure.message}`)
    process.exitCode = task.state === 'succeeded' ? 0 : 1
  })
}

function progressOf(task: Task, now: number, usualMs: number): Progress {
  const state = stateOf({ state: task.state, in_doubt: task.inDoubt })
  const elapsedMs = Math.max(0, (task.finishedAt ?? now) - task.createdAt)
  return { label: task.id, state, elapsedMs, usualMs, isOver: isOver(task.state) }
}

function sayChange(task: Task, { state, elapsedMs }: Progress, options: Pick<Options, 'json'>): void {
  if (options.json) say(JSON.stringify({ id: task.id, state: task.state, at: unixSeconds(Date.now()) }))
  else say(`${new Date().toISOString()} ${task.id} ${state} after ${Math.round(elapsedMs / 1000)} s`)
}
