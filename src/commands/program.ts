import { Command, Option } from 'commander'
import packageJson from '../../package.json'
import { storedTaskStates } from '../store/task-schema.ts'

/** argv → command. Commands are loaded when they are run: one should not pay for the others. */
export const program = new Command('turnpike')
  .description('One base address and one key in front of every model.')
  .version(packageJson.version)

const configOption = () => new Option('--config <file>', 'settings (default: turnpike.yaml, where there is one)')
const jsonOption = () => new Option('--json', 'one JSON document instead of text')
const modeOption = () =>
  new Option('--mode <mode>', 'whose accounts (default: the mode a start would have now)').choices(['sandbox', 'real'])

/** A command that works on the database; it shares the options that say which and how. */
function command(parent: Command, usage: string, description: string): Command {
  const made = parent.command(usage).description(description)
  return made.addOption(modeOption()).addOption(configOption()).addOption(jsonOption())
}

/** A command that reads records; it shares the options that say of whom and when. */
function report(parent: Command, usage: string, description: string): Command {
  return command(parent, usage, description)
    .option('--account <account>', 'name or id')
    .option('--from <when>', 'unix seconds, a date, or a time with its zone')
    .option('--to <when>', 'the end, not included')
}

/** Which page of a list. */
function paged(list: Command): Command {
  return list.option('--limit <count>', 'how many, at most 100', '20').option('--after <id>', 'those before this one')
}

program
  .command('serve')
  .description('run the gateway')
  .addOption(configOption())
  .action(async (options) => (await import('./serve.ts')).serve(options))

program
  .command('check')
  .description('say what is wrong with the settings, or what a start would serve')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./check.ts')).check(options))

program
  .command('models')
  .description('list the models that a start would serve, with their prices')
  .option('--all', 'also those that are not served, and why')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./models.ts')).models(options))

program
  .command('sandbox')
  .description('run the vendor simulators alone')
  .option('--port <number>', 'where to listen (default: SANDBOX_PORT, or a free one)')
  .option('--host <address>', 'whom to listen to (default: 127.0.0.1, this machine alone)')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./sandbox.ts')).sandbox(options))

/** What a key may do, said alike when it is made and when it is changed. */
function allowance(of: Command): Command {
  return of
    .option('--name <name>', 'what it is for')
    .option('--models <patterns>', "ids or patterns it may use, such as 'gpt-*,o3'; all is every model")
    .option('--expires <when>', 'such as 12h, 30d or 2027-01-31; or never')
    .option('--cap <cap>', 'what it may spend, such as 25/month, 5/day or 100/total; or none')
    .option('--requests-per-minute <n>', 'a number; or none')
    .option('--tokens-per-minute <n>', 'a number; or none')
    .option('--concurrent <n>', 'requests at once; or none')
    .option('--metadata <pairs>', 'texts of your own, such as team=blue,env=ci; or none')
}

function yesOrNo(flags: string, what: string): Option {
  return new Option(flags, what).choices(['true', 'false'])
}

const accounts = program.command('accounts').description('balances')
command(accounts, 'create', 'make an account')
  .requiredOption('--name <name>', 'what it is called')
  .option('--credit <dollars>', 'its first balance')
  .option('--unlimited', 'metered, and never refused for money')
  .action(async (options) => (await import('./accounts.ts')).create(options))
command(accounts, 'list', 'list accounts').action(async (options) => (await import('./accounts.ts')).list(options))
command(accounts, 'credit', 'pay in; a negative amount corrects down, never below zero')
  .argument('<account>', 'name or id')
  .argument('<dollars>', 'such as 10 or -0.25')
  .option('--note <text>', 'kept with the booking')
  .action(async (account, dollars, options) => (await import('./accounts.ts')).addCredit(account, dollars, options))
paged(command(accounts, 'credits', 'list what was paid in, newest first'))
  .argument('<account>', 'name or id')
  .action(async (account, options) => (await import('./credits.ts')).listCredits(account, options))
command(accounts, 'change', 'change what is given, and nothing else')
  .argument('<account>', 'name or id')
  .option('--name <name>', 'what it is called')
  .option('--cap <cap>', 'what it may spend, such as 25/month; or none')
  .addOption(yesOrNo('--enabled <value>', 'whether its keys work'))
  .addOption(yesOrNo('--unlimited <value>', 'metered, and never refused for money'))
  .action(async (account, options) => (await import('./accounts.ts')).change(account, options))

const keys = program.command('keys').description('API keys')
allowance(command(keys, 'create', 'make a key, and show it this once'))
  .requiredOption('--account <account>', 'name or id of the account it spends from')
  .action(async (options) => (await import('./keys.ts')).create(options))
command(keys, 'list', 'list keys')
  .option('--account <account>', 'of this account alone')
  .action(async (options) => (await import('./keys.ts')).list(options))
allowance(keys.command('change').description('change what is given, and nothing else'))
  .argument('<id>', 'as keys list shows it')
  .addOption(yesOrNo('--enabled <value>', 'whether it works'))
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./keys.ts')).change(id, options))
keys
  .command('revoke')
  .description('end a key for good, on every node within 5 seconds')
  .argument('<id>', 'as keys list shows it')
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./keys.ts')).revoke(id, options))
keys
  .command('revoke-operators')
  .description("end every operator's key at once; the next start takes the one it is given, or makes one")
  .addOption(jsonOption())
  .action(async (options) => (await import('./keys.ts')).revokeOperators(options))

program
  .command('reconcile')
  .description("check the books against themselves and against a vendor's bill; exit 0 clean, 2 open items, 1 broken")
  .option('--since <when>', 'what was recorded before is not expected on the bill, such as 2027-01-31')
  .option('--bill <url>', "a bill in the simulators' form (/__bill)")
  .option('--vendor-export <file>', 'a bill as CSV: ref,cost[,model][,input][,cachedInput][,output][,time]')
  .option('--vendor <id>', 'whose bill it is, where its lines do not tell')
  .addOption(new Option('--repair <how>', 'say what would be booked, or book it').choices(['dry', 'apply']))
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./reconcile.ts')).reconcile(options))

const ledger = program.command('ledger').description('the books')
ledger
  .command('reclaim')
  .description('give back what a node has leased whose disk is gone')
  .requiredOption('--node <id>', 'as turnpike reconcile shows it')
  .option('--confirm', 'it cannot be started again')
  .addOption(jsonOption())
  .action(async (options) => (await import('./ledger.ts')).reclaim(options))

/** What was used, by which key and of which model. */
function used(parent: Command, usage: string, description: string): Command {
  return report(parent, usage, description)
    .option('--key <id>', 'as keys list shows it')
    .option('--model <id>', 'of this model alone')
}

used(program, 'usage', 'what was used, and what it cost')
  .addOption(
    new Option('--by <group>', 'a line for each (default: one sum)').choices([
      'hour',
      'day',
      'model',
      'key',
      'account',
      'vendor',
      'capability',
    ]),
  )
  .action(async (options) => (await import('./usage.ts')).usage(options))

const requests = program.command('requests').description('single requests: what they used, never what they said')
paged(used(requests, 'list', 'list requests, the newest first')).action(async (options) =>
  (await import('./usage.ts')).listRequests(options),
)
command(requests, 'show', 'show one, with every attempt at a vendor')
  .argument('<id>', 'the x-request-id of its answer')
  .action(async (id, options) => (await import('./usage.ts')).showRequest(id, options))

const tasks = program.command('tasks').description('videos on their way: how far they are, never what they show')
paged(report(tasks, 'list', 'list tasks, the newest first'))
  .option('--model <id>', 'of this model alone')
  .addOption(new Option('--state <state>', 'in this state alone').choices(storedTaskStates))
  .option('--in-doubt', 'those of which nobody knows whether their vendor has them')
  .action(async (options) => (await import('./tasks.ts')).list(options))
command(tasks, 'show', 'show one')
  .argument('<id>', 'as tasks list shows it')
  .action(async (id, options) => (await import('./tasks.ts')).show(id, options))
command(tasks, 'watch', 'watch one to its end; exit 1 where it was not made')
  .argument('<id>', 'as tasks list shows it')
  .action(async (id, options) => (await import('./tasks.ts')).watch(id, options))

const webhooks = program.command('webhooks').description('events of finished tasks, and their delivery')
paged(report(webhooks, 'list', 'list events, the newest first'))
  .option('--task <id>', 'of this task alone')
  .option('--state <state>', 'pending, delivered, gone or given_up')
  .action(async (options) => (await import('./webhooks.ts')).list(options))
webhooks
  .command('resend')
  .description('send one again, under the same id')
  .argument('<id>', 'as webhooks list shows it')
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./webhooks.ts')).resend(id, options))
command(webhooks, 'secret', 'make a new signing secret, and show it this once; the old one is valid 24 h more')
  .argument('<account>', 'name or id')
  .action(async (account, options) => (await import('./webhooks.ts')).secret(account, options))
