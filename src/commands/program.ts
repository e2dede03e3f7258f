import { Command, Option } from 'commander'
import packageJson from '../../package.json'
import { groupings } from '../store/groupings.ts'
import type { KeyLimit } from '../store/schema.ts'
import { storedTaskStates } from '../store/task-schema.ts'
import { failWithoutOutput } from './output.ts'

/** The command line. Each command is imported when it is run, so that it does not pay for loading the others. */
export const program = new Command('turnpike')
  .description('One base address and one key in front of every model.')
  .version(packageJson.version)
  .hook('preAction', (_program, action) => {
    // A gateway goes on serving without its log.
    if (action.name() !== 'serve') failWithoutOutput()
  })

const configOption = () => new Option('--config <file>', 'the settings file (default: turnpike.yaml, if it exists)')
const jsonOption = () => new Option('--json', 'print JSON instead of text')
const modeOption = () =>
  new Option('--mode <mode>', 'which accounts (default: the mode a start would use now)').choices(['sandbox', 'real'])

/** A command that works on the database, with the options that all of them share. */
function command(parent: Command, usage: string, description: string): Command {
  const made = parent.command(usage).description(description)
  return made.addOption(modeOption()).addOption(configOption()).addOption(jsonOption())
}

/** A command that shows one record of either mode: its id, which is unique, is enough to find it. */
function lookUp(parent: Command, usage: string, description: string): Command {
  return parent.command(usage).description(description).addOption(jsonOption())
}

/** A command that reads records, with the options for an account and a period. */
function report(parent: Command, usage: string, description: string): Command {
  return command(parent, usage, description)
    .option('--account <account>', 'name or id')
    .option('--from <when>', 'start: unix seconds, a date, or a time with a time zone')
    .option('--to <when>', 'end (exclusive)')
}

/** Adds the options that choose a page of a list. */
function paged(list: Command): Command {
  return list.option('--limit <count>', 'how many, at most 100', '20').option('--after <id>', 'continue after this id')
}

program
  .command('serve')
  .description('run the gateway')
  .addOption(configOption())
  .action(async (options) => (await import('./serve.ts')).serve(options))

program
  .command('check')
  .description('validate the settings and show what a start would serve')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./check.ts')).check(options))

program
  .command('models')
  .description('list the models that a start would serve, with their prices')
  .option('--all', 'include models that are not served, with the reason')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./models.ts')).models(options))

program
  .command('sandbox')
  .description('run only the vendor simulators')
  .option('--port <number>', 'port to listen on (default: SANDBOX_PORT, or a free port)')
  .option('--host <address>', 'address to listen on (default: 127.0.0.1, this machine only)')
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./sandbox.ts')).sandbox(options))

const limitOptions = {
  requestsPerMinute: ['--requests-per-minute <n>', 'request limit; or none'],
  tokensPerMinute: ['--tokens-per-minute <n>', 'token limit; or none'],
  concurrent: ['--concurrent <n>', 'limit on concurrent requests; or none'],
} as const satisfies Record<KeyLimit, readonly [flag: string, what: string]>

/** Adds the options for what a key may do, the same when it is made and when it is changed. */
function allowance(of: Command): Command {
  of.option('--name <name>', 'a name for the key')
    .option('--models <patterns>', "models it may use, as ids or patterns such as 'gpt-*,o3'; or all")
    .option('--expires <when>', 'when it expires, such as 12h, 30d or 2027-01-31; or never')
    .option('--cap <cap>', 'spending cap in dollars, such as 25/month, 5/day or 100/total; or none')
  for (const [flag, what] of Object.values(limitOptions)) of.option(flag, what)
  return of.option('--metadata <pairs>', 'labels of your own, such as team=blue,env=ci; or none')
}

function yesOrNo(flags: string, what: string): Option {
  return new Option(flags, what).choices(['true', 'false'])
}

const accounts = program.command('accounts').description('manage accounts and balances')
command(accounts, 'create', 'create an account')
  .requiredOption('--name <name>', 'a unique name')
  .option('--credit <dollars>', 'the initial balance')
  .option('--unlimited', 'metered, but never refused for lack of funds')
  .action(async (options) => (await import('./accounts.ts')).create(options))
command(accounts, 'list', 'list accounts').action(async (options) => (await import('./accounts.ts')).list(options))
command(accounts, 'credit', 'add credit; a negative amount takes some back, never below zero')
  .argument('<account>', 'name or id')
  .argument('<dollars>', 'amount, such as 10 or -0.25')
  .option('--note <text>', 'a note to keep with the credit')
  .action(async (account, dollars, options) => (await import('./accounts.ts')).addCredit(account, dollars, options))
paged(command(accounts, 'credits', 'list credits, newest first; source cash:manual is real money, promo play money'))
  .argument('<account>', 'name or id')
  .action(async (account, options) => (await import('./credits.ts')).listCredits(account, options))
command(accounts, 'change', 'change the given settings of an account')
  .argument('<account>', 'name or id')
  .option('--name <name>', 'a new name')
  .option('--cap <cap>', 'spending cap in dollars, such as 25/month; or none')
  .addOption(yesOrNo('--enabled <value>', 'whether its keys work'))
  .addOption(yesOrNo('--unlimited <value>', 'metered, but never refused for lack of funds'))
  .action(async (account, options) => (await import('./accounts.ts')).change(account, options))

const keys = program.command('keys').description('manage API keys')
allowance(command(keys, 'create', 'create a key and show it once'))
  .requiredOption('--account <account>', 'name or id of the account it spends from')
  .action(async (options) => (await import('./keys.ts')).create(options))
command(keys, 'list', 'list keys')
  .option('--account <account>', 'only keys of this account')
  .action(async (options) => (await import('./keys.ts')).list(options))
allowance(keys.command('change').description('change the given settings of a key'))
  .argument('<id>', 'key id, as shown by keys list')
  .addOption(yesOrNo('--enabled <value>', 'whether it works'))
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./keys.ts')).change(id, options))
keys
  .command('revoke')
  .description('revoke a key for good, on every node within 5 seconds')
  .argument('<id>', 'key id, as shown by keys list')
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./keys.ts')).revoke(id, options))
keys
  .command('revoke-operators')
  .description("revoke every operator's key; the next start uses TURNPIKE_ADMIN_KEY or makes a new key")
  .addOption(jsonOption())
  .action(async (options) => (await import('./keys.ts')).revokeOperators(options))

program
  .command('reconcile')
  .description("check the ledger, also against a vendor's bill; exit 0: clean, 2: open items, 1: broken")
  .option('--since <when>', 'when the bill begins, such as 2027-01-31; earlier records are not expected on it')
  .option('--bill <url>', "a bill in the format of the simulators' /__bill")
  .option('--vendor-export <file>', 'a bill as CSV: ref,cost[,model][,input][,cachedInput][,output][,time]')
  .option('--vendor <id>', 'the vendor of the bill, if its lines do not show it')
  .addOption(new Option('--repair <how>', 'dry: show what would be booked; apply: book it').choices(['dry', 'apply']))
  .addOption(configOption())
  .addOption(jsonOption())
  .action(async (options) => (await import('./reconcile.ts')).reconcile(options))

const ledger = program.command('ledger').description('repair the ledger')
ledger
  .command('reclaim')
  .description('release the leases of a node whose disk is lost')
  .requiredOption('--node <id>', 'the node id, as shown by turnpike reconcile')
  .option('--confirm', 'do it; the node can never be started again')
  .addOption(jsonOption())
  .action(async (options) => (await import('./ledger.ts')).reclaim(options))

program
  .command('move-to-postgres')
  .description('move everything from SQLite to the empty database of DATABASE_URL; stop the gateway first')
  .addOption(jsonOption())
  .action(async (options) => (await import('./move.ts')).moveToPostgres(options))

/** A report of usage, with the options for a key and a model. */
function used(parent: Command, usage: string, description: string): Command {
  return report(parent, usage, description)
    .option('--key <id>', 'key id, as shown by keys list')
    .option('--model <id>', 'only this model')
}

used(program, 'usage', 'show usage and cost')
  .addOption(new Option('--by <group>', 'one line per group (default: a single total)').choices(groupings))
  .action(async (options) => (await import('./usage.ts')).usage(options))

const requests = program.command('requests').description('inspect single requests (usage, never prompts)')
paged(used(requests, 'list', 'list requests, newest first')).action(async (options) =>
  (await import('./usage.ts')).listRequests(options),
)
lookUp(requests, 'show', 'show a request with every attempt at a vendor')
  .argument('<id>', 'the x-request-id of the response')
  .action(async (id, options) => (await import('./usage.ts')).showRequest(id, options))

const tasks = program.command('tasks').description('inspect video tasks (status, never prompts)')
paged(report(tasks, 'list', 'list tasks, newest first'))
  .option('--model <id>', 'only this model')
  .addOption(new Option('--state <state>', 'only this state').choices(storedTaskStates))
  .option('--in-doubt', 'only tasks that the vendor may or may not have received')
  .action(async (options) => (await import('./tasks.ts')).list(options))
lookUp(tasks, 'show', 'show a task')
  .argument('<id>', 'task id, as shown by tasks list')
  .action(async (id, options) => (await import('./tasks.ts')).show(id, options))
lookUp(tasks, 'watch', 'watch a task until it ends; exit 1 if it did not succeed')
  .argument('<id>', 'task id, as shown by tasks list')
  .action(async (id, options) => (await import('./tasks.ts')).watch(id, options))

const webhooks = program.command('webhooks').description('inspect and resend webhook events')
paged(report(webhooks, 'list', 'list events, newest first'))
  .option('--task <id>', 'only events of this task')
  .option('--state <state>', 'pending, delivered, gone or given_up')
  .action(async (options) => (await import('./webhooks.ts')).list(options))
webhooks
  .command('resend')
  .description('send an event again, under the same id')
  .argument('<id>', 'event id, as shown by webhooks list')
  .addOption(jsonOption())
  .action(async (id, options) => (await import('./webhooks.ts')).resend(id, options))
command(webhooks, 'secret', 'make a new signing secret and show it once; the old one stays valid for 24 h')
  .argument('<account>', 'name or id')
  .action(async (account, options) => (await import('./webhooks.ts')).secret(account, options))

/** What the parser refuses is said as everything else is: in one line, by the program's name, with what to do next. */
function complainBriefly(refusing: Command, path: string): void {
  refusing.configureOutput({ outputError: (text, write) => write(inOurForm(text, `${path} --help`)) })
  for (const below of refusing.commands) complainBriefly(below, `${path} ${below.name()}`)
}

function inOurForm(text: string, help: string): string {
  const said = text
    .replace(/^error: /, '')
    .trimEnd()
    .replaceAll('\n', ' ')
  const advice = /Did you mean|Allowed choices/.test(said) ? '' : `; ${help} says what it takes`
  return `turnpike: ${advice === '' ? said : said.replace(/\.$/, '')}${advice}\n`
}

complainBriefly(program, 'turnpike')
