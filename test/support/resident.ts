import { join } from 'node:path'
import { compiled } from './compiled.ts'

export type Command = {
  readonly args: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  readonly folder: string
}

export type Ended = { readonly code: number; readonly out: string; readonly err: string }

/** A process that keeps the program loaded, and whoever waits for its command. */
type Resident = { readonly child: Bun.Subprocess; waiting: PromiseWithResolvers<Ended> | undefined }

let resident: Resident | undefined

/**
 * Runs a command of the real program without starting a process for it: loading the program takes ten times as long as
 * most commands, and the tests have hundreds of them. Undefined while another command runs, since two at once must be
 * two processes.
 */
export async function runInResident(command: Command): Promise<Ended | undefined> {
  resident ??= startResident()
  const used = resident
  if (used.waiting !== undefined) return undefined
  used.waiting = Promise.withResolvers()
  used.child.send(command)
  return used.waiting.promise.finally(() => {
    used.waiting = undefined
  })
}

/** It ends with this process, which closes the channel between them. */
function startResident(): Resident {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'run-commands.ts')], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '', ...compiled },
    ipc: (ended: Ended) => started.waiting?.resolve(ended),
    onExit: (_child, code) => {
      resident = undefined
      started.waiting?.reject(new Error(`the process that runs commands ended with ${code}`))
    },
  })
  child.unref()
  const started: Resident = { child, waiting: undefined }
  return started
}
