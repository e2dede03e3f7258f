import { z } from 'zod'
import { costField, costOf, modelField, spending, tool } from '../tool.ts'

const path = 'POST /v1/embeddings'

export const createEmbeddings = tool({
  name: 'create_embeddings',
  title: 'Turn texts into vectors',
  description:
    'Turns texts into vectors whose distance reflects meaning, for search and clustering. Returns one vector per text, in order. Costs money by tokens.',
  annotations: { ...spending, idempotentHint: true },
  input: z.strictObject({
    model: modelField('embeddings', 'text-embedding-3-small'),
    input: z
      .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
      .meta({ description: 'One text, or several.', examples: [['a river', 'a stream']] }),
    dimensions: z
      .int()
      .min(1)
      .optional()
      .meta({ description: 'The length of the vectors, on models that offer a choice.' }),
    encoding_format: z
      .enum(['float', 'base64'])
      .optional()
      .meta({ description: '`base64` (little-endian float32) is a quarter of the length.' }),
  }),
  output: z.looseObject({
    model: z.string(),
    data: z.array(z.looseObject({ index: z.int(), embedding: z.union([z.array(z.number()), z.string()]) })),
    usage: z.looseObject({}).optional(),
    cost: costField,
  }),
  routes: [path],
  async call(fields, context) {
    const asking = () => context.ask(path, { json: fields })
    const response = await context.progress.during('The texts are being embedded', asking)
    const { model, data, usage } = (await response.json()) as Vectors
    return { blocks: [], structured: { model, data, usage, cost: costOf(response) } }
  },
})

type Vectors = { readonly model: string; readonly data: readonly object[]; readonly usage?: object }
