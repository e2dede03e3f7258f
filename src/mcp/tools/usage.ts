import { z } from 'zod'
import { customerGroupings } from '../../reports/usage.ts'
import { reading, tool } from '../tool.ts'

const sums = 'GET /v1/usage'
const balance = 'GET /v1/balance'
const moment = 'Unix seconds, or a date such as 2027-01-31.'

export const getUsage = tool({
  name: 'get_usage',
  title: 'Read usage and balance',
  description:
    'The usage and cost of this key’s account, as totals (`report: sums`) or request by request (`requests`), or its balance (`balance`). Free.',
  annotations: reading,
  input: z.strictObject({
    report: z.enum(['sums', 'requests', 'balance']).default('sums'),
    group_by: z.enum(customerGroupings).optional().meta({ description: 'For totals: what to group by.' }),
    from: z
      .string()
      .optional()
      .meta({ description: `The beginning of the period. ${moment}` }),
    to: z
      .string()
      .optional()
      .meta({ description: `Its end. ${moment}` }),
    model: z.string().optional().meta({ description: 'Only totals of this model.' }),
    own: z.boolean().optional().meta({ description: 'Only the calling key, not its whole account.' }),
    limit: z.int().min(1).max(100).optional(),
    after: z.string().optional().meta({ description: 'The `next` of the previous page.' }),
  }),
  output: z.looseObject({
    data: z.array(z.looseObject({})).optional().meta({ description: 'Lines of totals, or requests, newest first.' }),
    next: z.string().nullish(),
    balance: z.string().optional().meta({ description: 'Dollars.' }),
    available: z.string().optional().meta({ description: 'The balance less what is held for running requests.' }),
  }),
  routes: [sums, balance],
  async call({ report, own, limit, ...asked }, context) {
    if (report === 'balance') return show(await context.ask(balance))
    const query = {
      ...asked,
      key: own === true ? 'self' : undefined,
      limit: limit?.toString(),
      records: report === 'requests' ? 'true' : undefined,
    }
    return show(await context.ask(sums, { query }))
  },
})

async function show(response: Response) {
  return { blocks: [], structured: (await response.json()) as Record<string, unknown> }
}
