import { messageOf } from './base/errors.ts'
import { withoutSecretsOf } from './commands/output.ts'

/** `npm start` passes no options to parse, and starts 20 ms earlier without loading the parser. */
async function run(args: readonly string[]): Promise<void> {
  if (args.length === 1 && args[0] === 'serve') return (await import('./commands/serve.ts')).serve({})
  const { program } = await import('./commands/program.ts')
  await program.parseAsync()
}

try {
  await run(process.argv.slice(2))
} catch (thrown) {
  process.stderr.write(`turnpike: ${withoutSecretsOf(messageOf(thrown), process.env)}\n`)
  process.exit(1)
}
