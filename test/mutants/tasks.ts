import type { Mutant } from './mutant.ts'

const tasks = ['src/tasks/tasks.test.ts']
const creation = ['src/tasks/create.test.ts']
const away = ['src/tasks/away.test.ts']
const store = ['src/store/tasks.test.ts']
const threats = ['test/threats/tasks.test.ts']

/** Changes that would buy a video twice, lose one, or charge for one wrongly. */
export const taskMutants: readonly Mutant[] = [
  {
    name: 'a task whose creation is in doubt is simply sent again',
    file: 'src/tasks/doubt.ts',
    from: 'const found = await find(parts, taskRoute, task)',
    to: "const found = 'absent' as Awaited<ReturnType<typeof find>>",
    tests: creation,
  },
  {
    name: 'a task is sent again as often as it takes',
    file: 'src/tasks/doubt.ts',
    from: 'if (task.sends < sendsMax) return',
    to: 'return',
    tests: creation,
  },
  {
    name: 'whoever has slept over a look sends the task all the same',
    file: 'src/tasks/doubt.ts',
    from: 'owner: node, sends: task.sends }',
    to: 'owner: node }',
    tests: creation,
  },
  {
    name: 'a task whose recording was in doubt is left to be sent',
    file: 'src/tasks/create.ts',
    from: '    if (isWritten) await abandon(parts, order, task)\n',
    to: '',
    tests: away,
  },
  {
    name: 'a task that somebody has sent again is withdrawn',
    file: 'src/tasks/end.ts',
    from: "from: statesBefore('refused'), sends: task.sends }",
    to: "from: statesBefore('refused') }",
    tests: away,
  },
  {
    name: 'an id that cannot be written down at once is forgotten',
    file: 'src/tasks/adopt.ts',
    from: "parts.withDatabaseRetries(write, 'goes on', about)",
    to: "parts.withDatabaseRetries(write, 'ends', about)",
    tests: away,
  },
  {
    name: 'a list is believed although clocks differ',
    file: 'src/vendors/video-news.ts',
    from: 'export const clockSkewMs = 10 * 60_000',
    to: 'export const clockSkewMs = 60_000',
    tests: ['test/spec/video-vendors.test.ts'],
  },
  {
    name: 'old tasks leave their events behind',
    file: 'src/store/task-retention.ts',
    from: "    await tx.deleteFrom('webhook_event').where('task_id', 'in', ids).execute()\n",
    to: '',
    tests: ['src/tasks/retention.test.ts'],
  },
  {
    name: 'what was kept under an Idempotency-Key is unlearned by a failure',
    file: 'src/store/idempotency.ts',
    from: "    .where('request_id', '=', fact.requestId)\n    .where('state', '=', 'running')\n",
    to: "    .where('request_id', '=', fact.requestId)\n",
    tests: ['src/idempotency/idempotency.test.ts'],
  },
  {
    name: 'an Idempotency-Key is free after a loss that is in the books',
    file: 'src/store/idempotency.ts',
    from: "return eb.or([eb('request.cost', '>', zeroNano), eb.exists(begun)])",
    to: "return eb('request.cost', '>', zeroNano)",
    tests: ['src/idempotency/idempotency.test.ts'],
  },
  {
    name: 'a 500 of a vendor is taken for a refusal',
    file: 'src/tasks/send.ts',
    from: 'return status >= 500 && !sureRefusals.has(kind)',
    to: 'return false',
    tests: creation,
  },
  {
    name: 'a task is sent again at its deadline',
    file: 'src/tasks/doubt.ts',
    from: 'if (isLate || lost < absencesMin) return',
    to: 'if (lost < 1) return',
    tests: creation,
  },
  {
    name: 'an id that comes late is forgotten',
    file: 'src/tasks/adopt.ts',
    from: "changeTask(store.db, { id: task.id, from: ['creating'] }, change)",
    to: "changeTask(store.db, { id: task.id, from: ['creating'], owner: parts.node }, change)",
    tests: creation,
  },
  {
    name: 'a task that is over may end again',
    file: 'src/store/tasks.ts',
    from: ".where('id', '=', task.id).where('state', 'in', task.from)",
    to: ".where('id', '=', task.id)",
    tests: store,
  },
  {
    name: 'the end of a task is told outside of its commit',
    file: 'src/tasks/end.ts',
    from: 'await addEventIn(',
    to: 'if (Math.random() < 2) return { changed, records, booked }\n      await addEventIn(',
    tests: tasks,
  },
  {
    name: 'a task is settled at the prices of the day',
    file: 'src/tasks/create.ts',
    from: 'prices: writePriceList(model.prices),',
    to: 'prices: model.prices as never,',
    tests: tasks,
  },
  {
    name: 'a film that comes after the deadline is nobody’s cost',
    file: 'src/tasks/late.ts',
    from: "if (news?.state === 'succeeded') await bookLoss(parts, task, news.used)\n  else if",
    to: 'if',
    tests: tasks,
  },
  {
    name: 'an unknown word fails a task',
    file: 'src/tasks/state.ts',
    from: "    case 'submitted':\n    case 'unknown-word':\n",
    to: "    case 'unknown-word':\n      return failed(noOutput)\n    case 'submitted':\n",
    tests: ['src/tasks/state.test.ts'],
  },
  {
    name: 'whoever knows an id sees the task',
    file: 'src/store/tasks.ts',
    from: "    .where('upstream_id', '=', by.id)\n    .where('account_id', '=', by.accountId)\n",
    to: "    .where('upstream_id', '=', by.id)\n",
    tests: store,
  },
  {
    name: 'what is over is claimed by everybody at once',
    file: 'src/store/task-claims.ts',
    from: 'next_poll_at <= ${now} and (claim_until is null or claim_until <= ${now})',
    to: 'next_poll_at <= ${now}',
    tests: store,
  },
  {
    name: 'an Idempotency-Key is kept after the task, not with it',
    file: 'src/store/tasks.ts',
    from: '    await recorded.also?.(tx)\n',
    to: '',
    tests: store,
  },
  {
    name: 'a link outlives its day in the vendor’s own record',
    file: 'src/tasks/show.ts',
    from: 'const record = linksReplaced(task.record ?? {}, task, now)',
    to: 'const record = task.record ?? {}',
    tests: threats,
  },
]
