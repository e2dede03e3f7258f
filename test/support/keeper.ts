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
