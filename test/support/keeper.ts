import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'

/**
 * The server lives exactly as long as the pipe to this shell, so that it never outlives the test process, not even
 * after kill -9. CONT is for a server that a test has stopped, which could not receive QUIT. Nobody may read by then
 * what the shell says of a server that is gone already: without the trap for PIPE it would die of its own words, and
 * leave the folders behind.
 */
const keeper = `
  folder=$0; data=$1; shift
  "$@" &
  server=$!
  trap '' INT TERM HUP PIPE
  cat > /dev/null
  kill -QUIT $server; kill -CONT $server
  wait $server
  rm -rf "$folder" "$data"
`

/** The folders are removed if the test process ends while they are filled, once nothing writes to them any more. */
const filler = `
  folder=$0; data=$1; shift
  trap '' INT TERM HUP PIPE
  "$@" < /dev/null > /dev/null || exit
  echo filled
  read -r released || rm -rf "$folder" "$data"
`

/** Empty names remove nothing. */
export type Removed = readonly [folder: string, data: string]

/** Runs a server until this process ends or the child's input is closed, and then removes its folders. */
export function keep(server: readonly string[], removed: Removed, options: SpawnOptions): ChildProcess {
  return spawn('/bin/sh', ['-c', keeper, ...removed, ...server], {
    ...options,
    stdio: ['pipe', 'ignore', 'pipe'],
    // A kill -9 is often meant for a whole group of processes.
    detached: true,
  })
}

/**
 * Runs a command that fills folders for a server. Until `release` is called, by which time a server keeps them, they go
 * with this process. Throws what a command says that fails; its folders are then left to the caller.
 */
export async function fill(
  command: readonly string[],
  removed: Removed,
  options: SpawnOptions,
): Promise<{ release(): Promise<void> }> {
  const child = spawn('/bin/sh', ['-c', filler, ...removed, ...command], { ...options, stdio: 'pipe', detached: true })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const isFilled = new Promise<boolean>((resolve) => child.stdout.once('data', () => resolve(true)))
  if (!(await Promise.race([isFilled, ended.then(() => false)]))) throw new Error(said)
  return {
    release() {
      child.stdin.end('\n')
      return ended
    },
  }
}
