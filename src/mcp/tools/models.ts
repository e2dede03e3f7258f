import { z } from 'zod'
import { capabilities } from '../../capabilities/capability.ts'
import { modelsFor, type ShowModel } from '../show-models.ts'
import { reading, tool, type Tool } from '../tool.ts'

/** Needs no path of its own: the list over HTTP has no prices. */
export function listModels(showModel: ShowModel): Tool {
  return tool({
    name: 'list_models',
    title: 'List models',
    description:
      'The models this key may use, with what each can do and what it costs. Call it before any tool that takes a `model`. Free.',
    annotations: reading,
    input: z.strictObject({
      capability: z
        .enum(capabilities)
        .optional()
        .meta({ description: 'Only those that do this.', examples: ['chat'] }),
      search: z
        .string()
        .optional()
        .meta({ description: 'Only those with this in their id.', examples: ['mini'] }),
    }),
    output: z.looseObject({
      models: z.array(
        z.looseObject({
          id: z.string(),
          owned_by: z.string(),
          capabilities: z.array(z.string()),
          context_tokens: z.int().optional(),
          prices: z.looseObject({}).meta({ description: 'Dollars, as text.' }),
        }),
      ),
    }),
    routes: [],
    call({ capability, search }, desk) {
      return desk.counted(() => {
        const models = modelsFor(desk)
          .filter(([id, model]) => {
            return (capability === undefined || model.capabilities.includes(capability)) && id.includes(search ?? '')
          })
          .map(([id, model]) => showModel(id, model))
        return { blocks: [], structured: { models } }
      })
    },
  })
}
