import type { Mutant } from './mutant.ts'

const tasks = ['src/tasks/tasks.test.ts']
const creation = ['src/tasks/create.test.ts']
const away = ['src/tasks/away.test.ts']
const store = ['src/store/tasks.test.ts']
const threats = ['test/threats/tasks.test.ts']

/** Changes that would buy a video twice, lose one, or charge for one wrongly. */
export const taskMutants: readonly Mutant[] = [
  {
    name: 'a task whose creation is in doubt is sent again unchecked',
    file: 'src/tasks/doubt.ts',
    from: 'const found = await find(parts, taskRoute, task)',
    to: "const found = 'absent' as Awaited<ReturnType<typeof find>>",
    tests: creation,
  },
  {
    name: 'a task is sent again without a limit',
    file: 'src/tasks/doubt.ts',
    from: 'if (task.sends < sendsMax) return',
    to: 'return',
    tests: creation,
  },
  {
    name: 'a node that was suspended sends a task that was sent again meanwhile',
    file: 'src/tasks/doubt.ts',
    from: 'owner: node, sends: task.sends, attemptId: task.attemptId }',
    to: 'owner: node, attemptId: task.attemptId }',
    tests: creation,
  },
  {
    name: 'a node that was suspended sends a task again that has gone to the next channel meanwhile',
    file: 'src/tasks/doubt.ts',
    from: 'sends: task.sends, attemptId: task.attemptId }',
    to: 'sends: task.sends }',
    tests: ['src/tasks/next-channel.test.ts'],
  },
  {
    name: 'a task whose recording was not confirmed is left to be sent',
    file: 'src/tasks/create.ts',
    from: '    if (isWritten) await abandon(parts, order, task)\n',
    to: '',
    tests: away,
  },
  {
    name: 'a task that another node has sent again is withdrawn',
    file: 'src/tasks/end.ts',
    from: "from: statesBefore('refused'), sends: task.sends, attemptId",
    to: "from: statesBefore('refused'), attemptId",
    tests: away,
  },
  {
    name: 'a task that has gone to the next channel is ended for the one before',
    file: 'src/tasks/end.ts',
    from: 'sends: task.sends, attemptId: task.attemptId }',
    to: 'sends: task.sends }',
    tests: ['src/tasks/next-channel.test.ts'],
  },
  {
    name: 'a vendor id that cannot be recorded at once is forgotten',
    file: 'src/tasks/adopt.ts',
    from: "parts.withDatabaseRetries(write, 'goes on', about)",
    to: "parts.withDatabaseRetries(write, 'ends', about)",
    tests: away,
  },
  {
    name: 'a list is trusted although the clocks differ',
    file: 'src/vendors/video-news.ts',
    from: 'export const clockSkewMs = 10 * 60_000',
    to: 'export const clockSkewMs = 60_000',
    tests: ['test/spec/video-vendors.test.ts'],
  },
  {
    name: 'deleted tasks leave their webhook events behind',
    file: 'src/store/task-retention.ts',
    from: "    await tx.deleteFrom('webhook_event').where('task_id', 'in', ids).execute()\n",
    to: '',
    tests: ['src/tasks/retention.test.ts'],
  },
  {
    name: 'a failure replaces the answer kept under an Idempotency-Key',
    file: 'src/store/idempotency.ts',
    from: "done(db, id, fact).where('state', '=', 'running').execute()",
    to: 'done(db, id, fact).execute()',
    tests: ['src/idempotency/idempotency.test.ts'],
  },
  {
    name: 'an Idempotency-Key is free after a request that made a loss',
    file: 'src/store/idempotency.ts',
    from: "return eb.or([eb('request.cost', '>', zeroNano), eb.exists(begun)])",
    to: "return eb('request.cost', '>', zeroNano)",
    tests: ['src/idempotency/idempotency.test.ts'],
  },
  {
    name: 'a vendor’s 500 is taken for a refusal',
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
    name: 'a vendor id that comes late is forgotten',
    file: 'src/tasks/adopt.ts',
    from: "changeTask(store.db, { id: task.id, from: ['creating'] }, change)",
    to: "changeTask(store.db, { id: task.id, from: ['creating'], owner: parts.node }, change)",
    tests: creation,
  },
  {
    name: 'a finished task can end again',
    file: 'src/store/tasks.ts',
    from: ".where('id', '=', task.id).where('state', 'in', task.from)",
    to: ".where('id', '=', task.id)",
    tests: store,
  },
  {
    name: 'the event of a task is not added in the commit that ends it',
    file: 'src/tasks/end.ts',
    from: 'await addEventIn(',
    to: 'if (Math.random() < 2) return { changed, records, booked }\n      await addEventIn(',
    tests: tasks,
  },
  {
    name: 'a task is settled at current prices, not at those of its order',
    file: 'src/tasks/create.ts',
    from: 'prices: writePriceList(model.prices),',
    to: 'prices: model.prices as never,',
    tests: tasks,
  },
  {
    name: 'the cost of a video that comes after the deadline is not booked',
    file: 'src/tasks/late.ts',
    from: "if (news?.state === 'succeeded') await bookLoss(parts, task, news.used)\n  else if",
    to: 'if',
    tests: tasks,
  },
  {
    name: 'an unknown state word fails a task',
    file: 'src/tasks/state.ts',
    from: "    case 'submitted':\n    case 'unknown-word':\n",
    to: "    case 'unknown-word':\n      return failed(noOutput)\n    case 'submitted':\n",
    tests: ['src/tasks/state.test.ts'],
  },
  {
    name: 'another account can read a task by its upstream id',
    file: 'src/store/tasks.ts',
    from: "    .where('upstream_id', '=', by.id)\n    .where('account_id', '=', by.accountId)\n",
    to: "    .where('upstream_id', '=', by.id)\n",
    tests: store,
  },
  {
    name: 'a task that is claimed already is claimed by other nodes too',
    file: 'src/store/task-claims.ts',
    from: 'next_poll_at <= ${now} and (claim_until is null or claim_until <= ${now})',
    to: 'next_poll_at <= ${now}',
    tests: store,
  },
  {
    name: 'an Idempotency-Key is not recorded in the commit of its task',
    file: 'src/store/tasks.ts',
    from: '    await recorded.also?.(tx)\n',
    to: '',
    tests: store,
  },
  {
    name: 'an expired link stays visible in the vendor’s own record',
    file: 'src/tasks/show.ts',
    from: 'const record = linksReplaced(task.record ?? {}, task, now)',
    to: 'const record = task.record ?? {}',
    tests: threats,
  },
]
