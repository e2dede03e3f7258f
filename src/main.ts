import { Command } from 'commander'
import packageJson from '../package.json'
import { scrub } from './base/log.ts'

/** argv → command. Commands are loaded when they are run: a start should not pay for the others. */
const program = new Command('turnpike')
  .description('One base address and one key in front of every model.')
  .version(packageJson.version)

program
  .command('serve')
  .description('run the gateway')
  .option('--config <file>', 'settings (default: turnpike.yaml, where there is one)')
  .action(async (options) => (await import('./commands/serve.ts')).serve(options))

try {
  await program.parseAsync()
} catch (thrown) {
  process.stderr.write(`turnpike: ${scrub(thrown instanceof Error ? thrown.message : String(thrown))}\n`)
  process.exit(1)
}
