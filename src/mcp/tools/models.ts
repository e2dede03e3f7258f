import { z } from 'zod'
import { capabilities } from '../../capabilities/capability.ts'
import { findModel } from '../../flow/find-model.ts'
import { briefly, limitsOf, modelsFor, showModel } from '../show-models.ts'
import { reading, tool } from '../tool.ts'

// About 9 KB of text; a catalogue of hundreds would fill a good part of a small model's context.
const pageSize = 50

const shownModel = z.looseObject({
  id: z.string(),
  owned_by: z.string(),
  capabilities: z.array(z.string()),
  context_tokens: z.int().optional(),
  shutdown_date: z.string().optional().meta({ description: 'The day on which its vendor has announced to end it.' }),
  prices: z.looseObject({}).meta({ description: 'Dollars, as text.' }),
})

/** Uses no path, because the list over HTTP comes complete, with every price, and cannot be filtered. */
export const listModels = tool({
  name: 'list_models',
  title: 'List models',
  description: [
    'Lists the models this key may use, page by page, with their capabilities and main prices. Call it before any tool that',
    'takes a `model`; narrow it by `capability` and `search`. `get_model` returns all prices and limits of one model. Free.',
  ].join(' '),
  annotations: reading,
  input: z.strictObject({
    capability: z
      .enum(capabilities)
      .optional()
      .meta({ description: 'Only models with this capability.', examples: ['chat'] }),
    search: z
      .string()
      .optional()
      .meta({ description: 'Only models whose id contains this.', examples: ['mini'] }),
    limit: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .meta({ description: `${pageSize} if absent.` }),
    after: z.string().optional().meta({ description: 'The `next` of the previous page.' }),
  }),
  output: z.looseObject({
    models: z.array(shownModel),
    total: z.int().meta({ description: 'The number of models on all pages.' }),
    next: z.string().nullable().meta({ description: 'Give it as `after` for the next page; null on the last.' }),
  }),
  routes: [],
  call({ capability, search = '', limit = pageSize, after = '' }, context) {
    return context.counted(() => {
      // Ids are in lower case; the names that users search for often are not.
      const wanted = search.toLowerCase()
      const fitting = modelsFor(context)
        .filter(([id, model]) => {
          return (capability === undefined || model.capabilities.includes(capability)) && id.includes(wanted)
        })
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
      // Models come and go, so the last one of the previous page may no longer exist.
      const left = fitting.filter(([id]) => id > after)
      const page = left.slice(0, limit)
      const models = page.map(([id, model]) => briefly(showModel(id, model)))
      const next = left.length > limit ? (page.at(-1)?.[0] ?? null) : null
      return { blocks: [], structured: { models, total: fitting.length, next } }
    })
  },
})

export const getModel = tool({
  name: 'get_model',
  title: 'Read about a model',
  description: 'Everything about one model: its capabilities, its limits and all of its prices. Free.',
  annotations: reading,
  input: z.strictObject({
    model: z
      .string()
      .min(1)
      .meta({ description: 'Its id; `list_models` names them.', examples: ['gpt-4o-mini'] }),
  }),
  output: shownModel.extend({
    takes: z.looseObject({}).meta({ description: 'Limits by capability: sizes, durations, voices and so on.' }),
  }),
  routes: [],
  call({ model: id }, context) {
    return context.counted(() => {
      const model = findModel(context.models, context.principal, id)
      return { blocks: [], structured: { ...showModel(id, model), takes: limitsOf(model) } }
    })
  },
})
