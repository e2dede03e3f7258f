import type { Command, Ended } from './resident.ts'

// The process of `resident.ts`. `src/main.ts` is evaluated anew for every command, and everything below it only once.
let commands = 0
// Each command gets another `process.exit`.
const exit = process.exit.bind(process)
// What is said is collected, as from a pipe, also where the tests run on a terminal.
process.stdout.isTTY = false

async function run({ args, variables, folder }: Command): Promise<Ended> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, variables)
  process.chdir(folder)
  process.argv.splice(2, Infinity, ...args)
  process.exitCode = 0
  const end = Promise.withResolvers<number>()
  const said = { out: '', err: '' }
  let isOver = false
  const listen = (stream: keyof typeof said) => (piece: string | Uint8Array) => {
    if (!isOver) said[stream] += typeof piece === 'string' ? piece : Buffer.from(piece).toString()
    return true
  }
  process.stdout.write = listen('out')
  process.stderr.write = listen('err')
  // oxlint-disable-next-line no-console -- it does not write by `process.stderr`
  console.error = (line: string) => void process.stderr.write(`${line}\n`)
  process.exit = (code) => {
    isOver = true
    end.resolve(Number(code ?? process.exitCode))
    // Stops the caller, for which there is nothing after this. Who catches it can say nothing more.
    throw new Error('the command has ended')
  }
  commands += 1
  // Where it fails before `process.exit`, the program itself is broken, and so is this process.
  import(`../../src/main.ts?command=${commands}`).then(() => end.resolve(Number(process.exitCode)), end.reject)
  const code = await end.promise
  // A command listens until its process ends, which this one does not.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners()
  for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT']) process.removeAllListeners(signal)
  return { code, ...said }
}

// Also where a command has left something running: a gateway, if a start is not refused as the test expects.
process.on('disconnect', () => exit())
process.on('message', (command: Command) => void run(command).then((ended) => process.send?.(ended)))
